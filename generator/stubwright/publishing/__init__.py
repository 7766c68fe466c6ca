"""Makes listings of a server for registries, directories and clients from the manifest and `pyproject.toml`."""
