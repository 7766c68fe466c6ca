"""Policies of a manifest: the permissions of callers, and the limits of calls."""
