"""The server half of the official SDK, as the runtime uses it: the only package here that imports `mcp.server`."""
