"""What models and their clients get of the tools: which of them, under which names, at what cost."""
