"""Parses URLs of Redis stores.

Messages show only the scheme of an invalid URL, because an unescaped password may be in any part.
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
"""The permitted options without TLS. Other options of the library would change its behavior."""

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
    """The address of a Redis server.

    Attributes:
        shown: The URL without credentials and options, for messages.
        prefix: The prefix of all keys; None for the default.
        credentials: The decoded user name and password; each may be missing.
        options: The other options.
    """

    shown: str
    prefix: str | None
    credentials: Mapping[str, str]
    options: Mapping[str, str]

    @property
    def url(self) -> str:
        """The URL with its options, without credentials."""
        return f"{self.shown}?{urlencode(self.options)}"


def has_redis_scheme(url: str) -> bool:
    """Return whether a URL has a scheme of Redis, case-insensitively (RFC 3986, 3.1)."""
    return show_scheme(url).lower() in {"redis://", "rediss://", "unix://"}


def show_scheme(url: str) -> str:
    """Return the scheme of a URL with `://`; empty without."""
    match = _SCHEME.match(url)
    return match[0] if match else ""


def parse_address(url: str, tls_options: Collection[str]) -> Address:
    """Return the parts of a Redis URL.

    Args:
        url: The URL.
        tls_options: The permitted options with TLS.

    Raises:
        StoreConfigurationError: The URL is invalid, or has an unknown option.
    """
    scheme = show_scheme(url).lower()
    match = (_SOCKET if scheme == "unix://" else _NETWORK).fullmatch(url, len(scheme))
    if match is None:
        raise StoreConfigurationError(f"the URL of the state is invalid; {_FORM}")
    options = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    if unknown := options.keys() - {*_OPTIONS, *tls_options}:
        # An unusual name, or any before an `@`, may be part of a password.
        is_shown = all(map(_NAME.fullmatch, unknown)) and "@" not in match["query"]
        names = ", ".join(sorted(unknown)) if is_shown else "an unknown option"
        allowed = f"{', '.join(_OPTIONS)}; with TLS {', '.join(sorted(tls_options))}"
        raise StoreConfigurationError(f"the URL of the state has {names}; it may have {allowed}")
    if scheme != "rediss://" and (surplus := options.keys() & {*tls_options}):
        raise StoreConfigurationError(
            f"the URL of the state has {', '.join(sorted(surplus))}, but no TLS; write rediss:// instead of {scheme}"
        )
    name, _, password = (match["user"] or "").partition(":")
    given = {"username": unquote(name), "password": unquote(password)}
    credentials = {key: value for key in given if (value := given[key] or options.get(key))}
    prefix = options.pop("prefix", None)
    rest = {key: value for key, value in options.items() if key not in given}
    return Address(scheme + match["place"], prefix, credentials, rest)
