"""Connections to servers, which may be broken or hostile."""
