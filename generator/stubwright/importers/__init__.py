"""Imports manifests from live servers, saved tool lists, OpenAPI documents and Python files."""
