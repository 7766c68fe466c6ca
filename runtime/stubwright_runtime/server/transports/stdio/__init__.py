"""Serves over standard input and output."""
