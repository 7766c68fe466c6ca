"""JSON Schema at run time: validation, and errors that describe what to do."""
