# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""Where a server keeps what outlives a request: in its own memory, or in Redis, for many processes at once."""
