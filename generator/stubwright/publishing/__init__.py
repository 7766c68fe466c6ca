"""Creates a server's listings for registries, directories and clients from the manifest and `pyproject.toml`."""
