"""The cache around the compiler: what has not changed is not done again, and what has is done on all processors.

The compiler knows nothing of it. Without it everything takes longer, and comes out the same.
"""
