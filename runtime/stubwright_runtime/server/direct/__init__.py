"""Requests that are being answered, over any transport, and the channels to their senders."""
