"""Verbs for contracts: the lists of a server, in a file for review."""
