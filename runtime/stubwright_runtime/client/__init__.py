"""The library of generated clients."""
