"""Errors that occur while getting an access token."""

from __future__ import annotations


class LoginError(Exception):
    """An access token cannot be obtained; the message is one sentence without secrets."""


class RefusedError(LoginError):
    """A token endpoint rejected a request for a token."""
