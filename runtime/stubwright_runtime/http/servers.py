"""Fills base URL variables from the server's environment (OpenAPI 3.1.1, section 4.8.6).

Values cannot extend the host or add path segments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_PART: Final = re.compile(r"(?!\.\.?$)[A-Za-z0-9._~-]+")


def is_part(value: str) -> bool:
    """Return whether a variable's value has only unreserved characters (RFC 3986, 2.3) and is neither `.` nor `..`."""
    return bool(_PART.fullmatch(value))


def fill_base_url(settings: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return an API's base URL with its variables filled in.

    Args:
        settings: The API's entry under `apis`.
        environment: The environment variables; unset ones fall back to their defaults.

    Raises:
        ValueError: A variable has an invalid value.
    """
    variables: Mapping[str, Mapping[str, Any]] = settings.get("variables") or {}

    def find_value(match: re.Match[str]) -> str:
        variable = variables[match[1]]
        given = environment.get(variable["env"]) or str(variable["default"])
        listed = variable.get("enum")
        if listed is not None and given not in listed:
            raise ValueError(f"{variable['env']} is {given!r}; it must be one of {', '.join(map(repr, listed))}")
        if not is_part(given):
            raise ValueError(f"{variable['env']} is {given!r}; only letters, digits, '.', '_', '~' and '-' are allowed")
        return given

    url = VARIABLE.sub(find_value, str(settings["baseUrl"]))
    try:
        parts = urlsplit(url)
        is_base = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_base = False
    if not is_base:
        names = ", ".join(str(variable["env"]) for variable in variables.values())
        raise ValueError(f"{names}: {url!r} is not a base URL")
    return url


def find_origin(url: str) -> tuple[str, str | None, int | None]:
    """Return a URL's scheme, host and port, which defaults to the scheme's port (RFC 6454, section 4).

    Raises:
        ValueError: The host or the port is invalid.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
