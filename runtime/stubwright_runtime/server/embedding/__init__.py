"""Servers for those who mount them in the official SDK: its low-level server, whose middleware asks the core."""
