"""The verbs that record and replay the messages of a server."""
