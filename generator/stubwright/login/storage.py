"""Stores access tokens between commands, keyed by server URL."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stubwright.login.errors import LoginError
from stubwright.project.files import user_secrets
from stubwright_runtime.http.servers import find_origin

if TYPE_CHECKING:
    from pathlib import Path

    from stubwright.login.tokens import Grant


def locate(server: str) -> Path:
    """Return the file for a server's tokens, whether or not it exists."""
    parts = urlsplit(server)
    key = json.dumps([*find_origin(server), parts.path.rstrip("/"), parts.query])
    return user_secrets.locate("logins", f"{hashlib.sha256(key.encode()).hexdigest()}.json")


def read(server: str) -> Grant | None:
    """Return the stored grant for a server, or None without one.

    Raises:
        LoginError: The file is invalid, or other users can read it.
    """
    path = locate(server)
    try:
        data = user_secrets.read(path)
    except user_secrets.ExposedError as error:
        raise LoginError(str(error)) from None
    except OSError as error:
        raise LoginError(f"`{path}` cannot be read: {error.strerror}") from None
    if data is None:
        return None
    from stubwright.login.tokens import Grant, Program

    try:
        value: dict[str, Any] = json.loads(data)
        known = value.pop("program")
        program = Program(**{**known, "scopes": tuple(known["scopes"])})
        return Grant(**{**value, "program": program, "scopes": tuple(value["scopes"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LoginError(f"`{path}` does not contain a login; delete it") from None


def write(server: str, grant: Grant) -> None:
    """Store a grant for a server. Raises LoginError if its file cannot be written."""
    path = locate(server)
    try:
        user_secrets.write(path, json.dumps(asdict(grant), indent=2).encode() + b"\n")
    except user_secrets.ExposedError as error:
        raise LoginError(str(error)) from None
    except OSError as error:
        raise LoginError(f"`{path}` cannot be written: {error.strerror}") from None


def delete(server: str) -> None:
    """Delete the grant for a server. Raises LoginError if its file cannot be deleted."""
    path = locate(server)
    try:
        user_secrets.delete(path)
    except OSError as error:
        raise LoginError(f"`{path}` cannot be deleted: {error.strerror}") from None
