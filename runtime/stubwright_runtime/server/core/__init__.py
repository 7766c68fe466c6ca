"""A request to a server, from its arrival to its result, independent of any transport."""
