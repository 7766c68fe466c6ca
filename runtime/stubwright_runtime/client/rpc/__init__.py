"""The client's JSON-RPC connection, and the untyped client that uses the connection."""
