"""Runs the server of `stubwright dev` as a process that is replaced after each save and keeps its address."""
