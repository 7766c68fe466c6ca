"""Mock servers that answer with examples, or with values generated from schemas."""
