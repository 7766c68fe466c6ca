"""Calls of tools: what each passes through between its request and its handler, and back."""
