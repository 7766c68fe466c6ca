"""Commands that record and replay a server's messages."""
