"""Standard input and output, framing, and how a process stops."""
