"""Proofs that one schema accepts everything that another one accepts."""
