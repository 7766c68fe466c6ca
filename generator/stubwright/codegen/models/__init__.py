"""Converts schemas to types, plans their classes, and generates modules of models."""
