"""A call of a server, from the request to the result; does not know any transport."""
