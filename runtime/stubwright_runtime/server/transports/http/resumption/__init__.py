"""Streams that clients come back to, up to 2025-11-25: their messages, kept in one process or in the shared store."""
