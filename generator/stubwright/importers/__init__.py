"""Descriptions from elsewhere as manifests: saved tool lists, in any of their common wrappers."""
