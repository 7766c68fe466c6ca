"""Tool calls: the steps between a request and the tool's handler."""
