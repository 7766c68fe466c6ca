"""Records conversations with MCP servers without secrets, and replays them."""
