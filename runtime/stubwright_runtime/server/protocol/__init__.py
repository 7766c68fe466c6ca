"""Messages of clients and to them: what is wrong with them, and who wants which; without I/O, and without the SDK."""
