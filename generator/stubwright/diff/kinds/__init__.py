"""The kinds of changes, a module for each part of a manifest."""
