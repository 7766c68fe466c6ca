"""JSON Schema: dialects, meta-schemas, references, and schemas as they go on the wire."""
