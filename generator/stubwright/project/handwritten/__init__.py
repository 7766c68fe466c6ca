"""Static analysis of handwritten modules and their imports."""
