"""The methods of MCP, a module for each kind of them."""
