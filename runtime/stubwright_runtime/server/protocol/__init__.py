"""Messages from clients and to them: their faults, and the wants of clients; without I/O, and without the SDK."""
