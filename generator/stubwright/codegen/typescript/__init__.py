"""Generates TypeScript: a module with a typed client for each server."""
