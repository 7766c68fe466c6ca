"""The server, built from a package: the only folder that selects modules by the manifest."""
