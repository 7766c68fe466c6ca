"""Logs, telemetry, and what is redacted from both."""
