"""Base URLs with variables from the server's environment (OpenAPI 3.1.1, section 4.8.6).

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
    """Return whether a text is a valid value: unreserved characters (RFC 3986, 2.3), and neither `.` nor `..`."""
    return bool(_PART.fullmatch(value))


def fill_base_url(settings: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return the base URL of an API.

    Args:
        settings: Its entry under `apis`.
        environment: The variables; unset ones have their default.

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
    """Return the scheme, the host and the port of a URL, by default the port of its scheme (RFC 6454, section 4).

    Raises:
        ValueError: The host or the port is invalid.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
