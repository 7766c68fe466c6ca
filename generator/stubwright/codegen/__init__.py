"""Generates the Python code of a package: types and classes for schemas, and text for the rest."""
