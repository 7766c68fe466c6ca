"""Tools that the manifest binds to HTTP calls."""
