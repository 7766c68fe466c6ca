"""Calls that run as tasks."""
