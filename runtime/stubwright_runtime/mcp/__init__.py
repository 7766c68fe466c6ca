"""The Model Context Protocol: its vocabulary, its revisions, and downgrades for older revisions."""
