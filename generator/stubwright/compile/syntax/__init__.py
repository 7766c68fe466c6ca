"""Files as text: JSON and YAML to values, and places in them to lines and columns."""
