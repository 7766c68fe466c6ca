"""CORS (Fetch Standard, "CORS protocol")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp

_ORIGIN: Final = re.compile(
    r"(?!https://.*:443$|http://.*:80$)https?://[^\s/*?#@\u0080-\U0010ffff]+", re.IGNORECASE | re.ASCII
)

ORIGIN_HELP: Final = "is not an origin such as https://app.example.com: in ASCII, without a path or default port"
"""The rest of an error message that starts with the invalid origin."""

_HOST: Final = re.compile(r"[^\s/?#@]+")

_METHODS: Final = ("GET", "POST", "DELETE")
_READABLE: Final = ("Mcp-Session-Id", "WWW-Authenticate", "Retry-After")
"""The response headers that pages can read."""


def is_origin(text: str) -> bool:
    """Return whether a string is a valid value for an allowed origin."""
    return _ORIGIN.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """Return whether a string is a valid `Host` header, not a URL or path."""
    return _HOST.fullmatch(text) is not None


def check_places(path: str, hosts: Sequence[str], origins: Sequence[str]) -> None:
    """Validate an endpoint's path, hosts and origins.

    Raises:
        TypeError: The hosts or the origins are a string instead of a list.
        ValueError: The path does not start with a slash, or a host is a URL or has a path.
    """
    for name, values in (("allowed_hosts", hosts), ("allowed_origins", origins)):
        if isinstance(values, str):
            raise TypeError(f"{name} must be a list, such as [{values!r}]")
    if path and not path.startswith("/"):
        raise ValueError(f"path must start with /: {path!r}")
    for host in hosts:
        if not is_host(host):
            raise ValueError(f"{host!r} is not a host, such as api.example.com, without a scheme or path")


class CorsPolicy:
    """An endpoint's CORS policy.

    Attributes:
        origins: The allowed origins.
    """

    def __init__(self, origins: Sequence[str]) -> None:
        """Create a policy for the allowed origins. Raises ValueError if an origin is invalid."""
        for origin in origins:
            if not is_origin(origin):
                raise ValueError(f"{origin!r} {ORIGIN_HELP}")
        self.origins = tuple(origin.lower() for origin in origins)  # the form that browsers send

    def wrap(self, endpoint: ASGIApp) -> ASGIApp:
        """Wrap the endpoint in CORS middleware; without allowed origins, return the endpoint itself."""
        if not self.origins:
            return endpoint
        # All headers are allowed, because `Mcp-Param-…` headers can have any suffix.
        return CORSMiddleware(
            endpoint, self.origins, allow_methods=_METHODS, allow_headers=("*",), expose_headers=_READABLE
        )
