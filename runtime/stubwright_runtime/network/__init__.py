"""HTTP clients, with their connections, certificates and proxies."""
