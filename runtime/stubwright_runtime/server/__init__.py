"""The runtime of generated servers."""
