"""Contracts: a server's lists as a manifest for review, with a digest and a location, but without secrets."""
