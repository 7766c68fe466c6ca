"""A call of a client, from typed arguments to a typed result."""
