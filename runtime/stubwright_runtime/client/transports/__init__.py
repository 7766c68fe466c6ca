"""Connections to servers, which might be faulty or hostile."""
