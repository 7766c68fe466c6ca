"""Not generated."""
