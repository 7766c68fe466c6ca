"""Base classes for generated models."""
