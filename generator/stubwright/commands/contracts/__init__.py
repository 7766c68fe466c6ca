"""Verbs about contracts: what a server lists, as a file that people review."""
