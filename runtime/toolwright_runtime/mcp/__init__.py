"""The Model Context Protocol: its revisions and primitives."""
