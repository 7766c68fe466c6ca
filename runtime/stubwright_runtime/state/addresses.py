"""Parses Redis store URLs.

Messages show only an invalid URL's scheme, because any other part might contain an unescaped password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlencode

from .store import StoreConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_OPTIONS: Final = ("prefix", "db", "username", "password", "client_name")
"""The options allowed without TLS. The library's other options would change its behavior."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE | re.ASCII)
_NETWORK: Final = re.compile(
    r"(?:(?P<user>[^/?#\[\]]*)@)?(?P<place>(?:\[[0-9a-f:.%]+\]|[^\s/?#\[\]@:]*)(?::[0-9]{1,5})?(?:/[0-9]*)?)(?:\?(?P<query>[^#]*))?",
    re.IGNORECASE,
)
_SOCKET: Final = re.compile(r"(?:(?P<user>[^/?#\[\]]*)@)?(?P<place>/[^?#]+(?<!\s))(?:\?(?P<query>[^#]*))?")
_NAME: Final = re.compile(r"[a-z_]+")

_FORM: Final = "write redis://USER:PASSWORD@HOST:PORT/DB, and percent-encode a password (`%2F` for `/`, `%40` for `@`)"


@dataclass(frozen=True, slots=True)
class Address:
    """A Redis server's address.

    Attributes:
        shown: The URL without credentials and options, for messages.
        prefix: The prefix for all keys, or `None` for the default.
        credentials: The decoded user name and password, each optional.
        options: The URL's other query options.
    """

    shown: str
    prefix: str | None
    credentials: Mapping[str, str]
    options: Mapping[str, str]

    @property
    def url(self) -> str:
        """The URL with the options, without credentials."""
        return f"{self.shown}?{urlencode(self.options)}"


def has_redis_scheme(url: str) -> bool:
    """Return whether a URL has a Redis scheme, case-insensitively (RFC 3986, 3.1)."""
    return show_scheme(url).lower() in {"redis://", "rediss://", "unix://"}


def show_scheme(url: str) -> str:
    """Return a URL's scheme with `://`, or an empty string."""
    match = _SCHEME.match(url)
    return match[0] if match else ""


def parse_address(url: str, tls_options: Collection[str]) -> Address:
    """Parse a Redis URL.

    Args:
        url: A URL that starts with `redis://`, `rediss://` or `unix://`.
        tls_options: The options allowed with TLS.

    Raises:
        StoreConfigurationError: The URL is invalid or has an unknown option.
    """
    scheme = show_scheme(url).lower()
    match = (_SOCKET if scheme == "unix://" else _NETWORK).fullmatch(url, len(scheme))
    if match is None:
        raise StoreConfigurationError(f"the state URL is invalid; {_FORM}")
    options = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    if unknown := options.keys() - {*_OPTIONS, *tls_options}:
        # An unusual option name, or any name before an `@`, might be part of a password.
        is_shown = all(map(_NAME.fullmatch, unknown)) and "@" not in match["query"]
        names = ", ".join(sorted(unknown)) if is_shown else "an unknown option"
        allowed = f"{', '.join(_OPTIONS)}; with TLS {', '.join(sorted(tls_options))}"
        raise StoreConfigurationError(f"the state URL has {names}; the allowed options are {allowed}")
    if scheme != "rediss://" and (surplus := options.keys() & {*tls_options}):
        raise StoreConfigurationError(
            f"the state URL has {', '.join(sorted(surplus))}, which requires TLS; write rediss:// instead of {scheme}"
        )
    name, _, password = (match["user"] or "").partition(":")
    given = {"username": unquote(name), "password": unquote(password)}
    credentials = {key: value for key in given if (value := given[key] or options.get(key))}
    prefix = options.pop("prefix", None)
    rest = {key: value for key, value in options.items() if key not in given}
    return Address(scheme + match["place"], prefix, credentials, rest)
