"""Manifests from descriptions of others: the first import, and the next ones."""
