"""Runs handlers: threads, cancellation and signals."""
