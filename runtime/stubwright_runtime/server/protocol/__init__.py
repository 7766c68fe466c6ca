"""Messages of clients and to them: what is wrong with them, and who wants which. No input or output, nothing of the SDK."""
