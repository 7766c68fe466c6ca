"""The server, built from a package: the only folder that knows which modules a manifest needs."""
