"""The server side of the runtime, which generated servers import."""
