"""HTTP clients: their connections, certificates and proxies."""
