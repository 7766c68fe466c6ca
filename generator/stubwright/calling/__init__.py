"""Calls servers and shows their lists on the command line."""
