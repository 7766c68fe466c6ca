"""Agent skills that a server offers to hosts (SEP-2640)."""
