"""Pages of other origins that may call from a browser (Fetch Standard, "CORS protocol")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp

_ORIGIN: Final = re.compile(r"https?://[^\s/*?#@]+", re.IGNORECASE)

_HOST: Final = re.compile(r"[^\s/?#@]+")

_METHODS: Final = ("GET", "POST", "DELETE")
_READABLE: Final = ("Mcp-Session-Id", "WWW-Authenticate", "Retry-After")
"""Headers of answers that a client needs and that a page may not read by default."""


def is_origin(text: str) -> bool:
    """Return whether a text is an origin, as browsers send it."""
    return _ORIGIN.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """Return whether a text may be the value of a `Host` header: no URL and no path."""
    return _HOST.fullmatch(text) is not None


def check_places(path: str, hosts: Sequence[str], origins: Sequence[str]) -> None:
    """Refuse a path and hosts that no request has.

    Raises:
        TypeError: The hosts or the origins are one string, which would count as a list of characters.
        ValueError: The path does not start with a slash, or a host is a URL or has a path.
    """
    for name, values in (("allowed_hosts", hosts), ("allowed_origins", origins)):
        if isinstance(values, str):
            raise TypeError(f"{name} is a list, such as [{values!r}]")
    if path and not path.startswith("/"):
        raise ValueError(f"path is {path!r}; it must start with /")
    for host in hosts:
        if not is_host(host):
            raise ValueError(f"{host!r} is not a host; write one such as api.example.com, without a scheme and a path")


class CorsPolicy:
    """The permission for pages of some origins to call.

    Attributes:
        origins: The origins.
    """

    def __init__(self, origins: Sequence[str]) -> None:
        """Take the origins. Raises ValueError if one is invalid."""
        for origin in origins:
            if not is_origin(origin):
                raise ValueError(
                    f"{origin!r} is not an origin; write one such as https://app.example.com, without a path"
                )
        self.origins = tuple(origin.lower() for origin in origins)  # as browsers send them

    def wrap(self, endpoint: ASGIApp) -> ASGIApp:
        """Return an endpoint that the pages may call; without any, the endpoint itself."""
        if not self.origins:
            return endpoint
        # Any header, since arguments may be mirrored into headers of any name.
        return CORSMiddleware(
            endpoint, self.origins, allow_methods=_METHODS, allow_headers=("*",), expose_headers=_READABLE
        )
