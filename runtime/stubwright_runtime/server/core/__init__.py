"""A call to a server from request to result, independent of any transport."""
