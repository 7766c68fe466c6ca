"""Contracts: the lists of a server as a manifest for review, with a digest and a location, but without secrets."""
