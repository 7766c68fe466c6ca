"""Converts OpenAPI schemas to JSON Schema, including discriminators and files in forms."""
