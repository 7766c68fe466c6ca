"""HTTP-backed tools."""
