"""Engines that run tasks, in this process or over a Redis stream, and the turns that tasks take."""
