"""Parsers for JSON, YAML and shorthand, which track source positions."""
