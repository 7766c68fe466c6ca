"""Handwritten modules, as far as reading them tells: their handlers and their imports; nothing is imported."""
