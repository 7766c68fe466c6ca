"""The error of a login."""

from __future__ import annotations


class LoginError(Exception):
    """There is no access token; the message is the reason, in one sentence without a secret."""


class RefusedError(LoginError):
    """A token endpoint, which was reached, gives no token."""
