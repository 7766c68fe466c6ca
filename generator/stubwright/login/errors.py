"""Errors that occur while getting an access token."""

from __future__ import annotations


class LoginError(Exception):
    """No access token is available; the message is one sentence without secrets."""


class RefusedError(LoginError):
    """A token endpoint rejected a request for a token."""
