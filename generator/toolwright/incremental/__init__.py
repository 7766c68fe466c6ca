"""What need not be done again: digests of what things are made from, and a second process that makes models."""
