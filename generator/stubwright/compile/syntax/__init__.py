"""Parsers for JSON, YAML and shorthand, and positions in their texts."""
