"""Files as text: JSON, YAML and shorthand to values, and places in them to lines and columns."""
