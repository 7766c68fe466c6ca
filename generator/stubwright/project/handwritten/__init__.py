"""Static analysis of handwritten modules: their handlers and imports, without importing them."""
