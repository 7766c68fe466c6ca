"""The other files of a package, and what their templates are given."""
