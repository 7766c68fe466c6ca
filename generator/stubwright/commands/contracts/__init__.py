"""Commands for contracts: a server's lists in a file for review."""
