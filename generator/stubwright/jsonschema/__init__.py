"""JSON Schema: dialects, meta-schemas, references, transformations, and instances."""
