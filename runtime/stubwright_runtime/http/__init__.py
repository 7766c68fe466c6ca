"""Tools that are HTTP calls."""
