"""The remaining files of a package, and the variables of their templates."""
