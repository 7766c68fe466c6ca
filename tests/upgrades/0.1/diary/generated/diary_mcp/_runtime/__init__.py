# Part of stubwright's runtime, copied as it is. DO NOT EDIT.
"""What generated packages run on: ordinary modules, copied into each package as they are."""
