"""Builds a server from a package. Only this folder selects modules by the manifest's contents."""
