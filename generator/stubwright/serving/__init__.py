"""Runs the `stubwright dev` server in a process that is replaced after each save but keeps its address."""
