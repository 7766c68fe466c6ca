"""Reads and writes files, the lock, and the user's cache folder."""
