"""What registries, directories and clients are told of a server: made from the manifest and `pyproject.toml`."""
