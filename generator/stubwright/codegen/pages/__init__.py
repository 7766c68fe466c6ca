"""A package's remaining files, and the variables for their templates."""
