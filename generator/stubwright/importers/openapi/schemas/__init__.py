"""Schemas of OpenAPI documents as JSON Schema: their conversion, discriminators, and files in forms."""
