"""The Model Context Protocol: its vocabulary, its revisions, and what older revisions cannot carry."""
