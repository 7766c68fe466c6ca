"""Logging and telemetry, both with redaction of secrets."""
