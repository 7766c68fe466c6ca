"""Verbs about contracts: the lists of a server, as a file that people review."""
