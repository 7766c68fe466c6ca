"""A call of a server, from the request to the result; knows no transport."""
