"""Runs the server of `stubwright dev` in a process that is replaced after each save but keeps its address."""
