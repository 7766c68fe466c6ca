"""Compares two manifests and reports which clients and code the changes break."""
