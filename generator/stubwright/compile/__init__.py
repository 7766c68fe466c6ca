"""Compiles the text of a manifest to the IR, and the IR to the files of its package."""
