"""Listings of a server for registries, directories and clients, made from the manifest and `pyproject.toml`."""
