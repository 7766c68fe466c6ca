"""Utilities for JSON values and text that clients and servers share."""
