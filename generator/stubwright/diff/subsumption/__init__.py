"""Proves that one schema accepts every instance that another schema accepts."""
