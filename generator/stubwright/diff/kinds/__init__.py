"""Compares the parts of manifests, with one module for each kind of change."""
