"""Where a server keeps what outlives a request: in its own memory, or in Redis, for many processes at once."""
