# Part of stubwright's runtime, copied as it is. DO NOT EDIT.
"""What generated servers run on."""
