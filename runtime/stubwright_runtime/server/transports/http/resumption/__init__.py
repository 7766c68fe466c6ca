"""Streams that clients come back to, up to 2025-11-25: what was sent, kept in one process or where all can give it."""
