"""Commands that import manifests from other descriptions, and refresh them."""
