"""Checks of tools from the view of models and clients: selection, names, cost and compatibility."""
