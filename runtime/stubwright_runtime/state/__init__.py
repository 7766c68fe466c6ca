"""Stores for state that outlives a request: in the server's memory, or in Redis for many processes."""
