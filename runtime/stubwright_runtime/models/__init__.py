"""The base classes of generated models."""
