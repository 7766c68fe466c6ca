"""Transports: stdio, Streamable HTTP and in-process."""
