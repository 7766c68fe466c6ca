"""The bases of generated models."""
