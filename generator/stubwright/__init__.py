"""Compiles declarative tool manifests into typed Model Context Protocol servers and clients."""

__version__ = "0.3.0.dev0"
