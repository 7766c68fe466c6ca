"""Requests that are being answered, whatever they came by, and the ways to their senders."""
