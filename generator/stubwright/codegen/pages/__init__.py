"""A package's files other than models, and the variables for their templates."""
