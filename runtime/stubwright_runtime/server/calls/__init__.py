"""Tool calls: the steps between a request and its handler."""
