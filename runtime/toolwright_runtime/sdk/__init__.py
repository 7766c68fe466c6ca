"""The server half of the official SDK, as the runtime uses it: the only room that imports `mcp.server`."""
