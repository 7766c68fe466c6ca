"""Contracts: reviewable manifests of a server's lists, with a digest and the server's location, and without secrets."""
