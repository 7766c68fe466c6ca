"""Resumable streams, up to 2025-11-25: their messages are stored in one process or in the shared store."""
