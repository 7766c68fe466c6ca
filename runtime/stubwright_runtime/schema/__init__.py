"""JSON Schema at run time: validation, and errors that say what to do."""
