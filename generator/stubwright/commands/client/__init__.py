"""The verbs that talk to one server: `call`, `list` and `inspect`."""
