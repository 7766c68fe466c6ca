"""JSON Schema: dialects, meta-schemas, references, and the wire form of schemas."""
