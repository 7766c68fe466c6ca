"""Stores for state that outlives a request, in memory or in Redis for several processes."""
