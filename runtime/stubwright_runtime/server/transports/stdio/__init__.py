"""The stdio transport."""
