"""HTTP of this machine: clients, their connections, certificates and proxies."""
