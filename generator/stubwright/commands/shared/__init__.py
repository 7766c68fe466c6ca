"""Code that several commands share: inputs, options, and the console."""
