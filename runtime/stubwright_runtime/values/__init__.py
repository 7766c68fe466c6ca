"""JSON values and text, and checks for clients and servers."""
