"""The Model Context Protocol: constants, revisions, and downgrades to older revisions."""
