"""Audit records, metrics and spans of requests."""
