"""Proves that one schema accepts every instance of another schema."""
