"""The direct path: what needs no conversation is answered without the SDK."""
