"""Commands that connect to one server: `call`, `list` and `inspect`."""
