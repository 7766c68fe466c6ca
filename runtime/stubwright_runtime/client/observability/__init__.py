"""Audit records, metrics and spans for calls."""
