"""What listens on a network address, and speaks HTTP there."""
