"""The verbs that import manifests from other descriptions, and refresh them."""
