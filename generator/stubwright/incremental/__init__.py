"""Caches compiled tools and compiles changed tools on all processors.

The compiler does not depend on it. Runs without the cache produce the same output.
"""
