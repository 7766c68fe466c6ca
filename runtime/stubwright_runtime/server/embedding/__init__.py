"""Servers for embedding in the official SDK: its low-level server, whose middleware asks the core."""
