"""The tools of a client for frameworks that run agents, a module for each framework."""
