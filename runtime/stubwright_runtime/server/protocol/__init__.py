"""Messages of clients, from bytes to what is wrong with them: no input or output, and nothing of the SDK."""
