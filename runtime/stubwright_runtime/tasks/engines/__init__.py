"""Engines that run tasks: in this process, or in workers that share a Redis stream."""
