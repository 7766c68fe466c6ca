"""Policies in a manifest: caller permissions and call limits."""
