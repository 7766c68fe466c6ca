"""Compares the parts of manifests, a module for each kind of change."""
