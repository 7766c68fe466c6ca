"""The client's JSON-RPC connection, and the untyped client on top of it."""
