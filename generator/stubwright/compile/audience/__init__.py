"""The view that models and their clients have of the tools: the selection, the names and the cost."""
