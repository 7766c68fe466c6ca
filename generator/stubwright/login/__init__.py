"""Gets OAuth 2.1 access tokens via browser login or client credentials (MCP 2026-07-28, basic/authorization)."""
