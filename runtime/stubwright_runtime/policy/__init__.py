"""A manifest's policies: permissions of callers, and limits of calls."""
