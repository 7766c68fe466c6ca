"""Gets OAuth 2.1 access tokens for servers by browser or client credentials (MCP 2026-07-28, basic/authorization)."""
