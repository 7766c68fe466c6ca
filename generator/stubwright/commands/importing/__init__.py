"""Manifests from what others describe: the first import, and the next ones."""
