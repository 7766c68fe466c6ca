"""Generates a package's code: models from schemas, and pages from templates."""
