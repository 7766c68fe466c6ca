"""Access tokens for servers behind OAuth 2.1 (MCP 2026-07-28, basic/authorization): by a browser, or by credentials."""
