"""Pending POST requests."""
