"""Parses, validates and encodes messages, and tracks clients' subscriptions; uses neither I/O nor the SDK."""
