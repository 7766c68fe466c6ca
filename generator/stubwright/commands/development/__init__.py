"""The verb `dev`, which serves a manifest while it is edited."""
