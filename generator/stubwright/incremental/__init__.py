"""The cache around the compiler: unchanged tools are not compiled again, and changed ones are compiled on all
processors.

The compiler does not depend on it. Runs that do not use the cache take longer, with the same result.
"""
