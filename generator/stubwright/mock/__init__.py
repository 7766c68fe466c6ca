"""Mock servers that respond with examples, or with values generated from schemas."""
