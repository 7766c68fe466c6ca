"""JSON Schema validation at run time, with actionable errors."""
