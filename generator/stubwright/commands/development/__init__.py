"""The `dev` command, which serves a manifest while it is edited."""
