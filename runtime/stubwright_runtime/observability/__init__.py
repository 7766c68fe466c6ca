"""Logs, telemetry, and the redaction of secrets in both."""
