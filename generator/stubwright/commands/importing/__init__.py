"""Commands that create manifests from other descriptions, and refresh them."""
