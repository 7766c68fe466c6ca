"""Agents of several frameworks, on their own test models, which call the tools of a generated client."""
