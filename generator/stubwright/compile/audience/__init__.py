"""The tools as models and their clients see them: selection, names and cost."""
