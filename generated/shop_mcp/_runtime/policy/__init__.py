# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""What a manifest says about who may do what, and how much of it."""
