"""Commands for contracts: files that record a server's lists for review."""
