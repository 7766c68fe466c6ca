"""The runtime library for generated clients."""
