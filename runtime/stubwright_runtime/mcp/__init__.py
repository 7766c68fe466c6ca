"""The Model Context Protocol: its constants, its revisions, and downgrades for older revisions."""
