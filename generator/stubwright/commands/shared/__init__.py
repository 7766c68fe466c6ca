"""Code shared by several commands: inputs, options, and the console."""
