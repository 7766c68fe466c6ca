"""Compares two manifests, and reports whom the changes break."""
