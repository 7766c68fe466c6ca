"""The listener on a network address, which speaks HTTP."""
