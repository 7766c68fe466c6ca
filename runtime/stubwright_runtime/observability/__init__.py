"""Logging, telemetry, and secret redaction in both."""
