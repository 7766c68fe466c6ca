"""Parts of HTTP requests: the parts of URLs, and the header fields that a manifest may set, with their values."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""The name of a header (RFC 9110, section 5.6.2)."""

CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that a header's value must not contain (RFC 9110, section 5.5)."""

VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
"""A variable of a URL in braces, as in OpenAPI paths and RFC 6570 templates."""

_BLANK: Final = re.compile(r"[\s\x00-\x20\x7f{}]")

_OURS: Final = frozenset(
    {"connection", "content-length", "expect", "http2-settings", "keep-alive", "proxy-authenticate"}
    | {"proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that specify where a request ends and how it travels (RFC 9110, sections 7.6.1 and 8.6; RFC 9112, section
6).
"""


def is_url(word: str) -> bool:
    """Return whether a word of the command line is a URL of HTTP, valid or not; schemes have no case (RFC 3986,
    3.1).
    """
    return word.lower().startswith(("http://", "https://"))


def split(url: str) -> SplitResult | None:
    """Return the parts of a URL; None if its host or its port is invalid (RFC 3986, section 3.2)."""
    try:
        parts = urlsplit(url)
        is_sound = parts.port != 0
    except ValueError:
        return None
    return parts if is_sound else None


def is_token_url(url: str) -> bool:
    """Return whether secrets can be sent to a token endpoint: by `https`, or on this machine (RFC 6749, section
    3.2).
    """
    parts = split(url)
    if parts is None or not parts.hostname or parts.username is not None or parts.fragment or _BLANK.search(url):
        return False
    return is_unseen(parts)


def is_unseen(parts: SplitResult) -> bool:
    """Return whether a URL is safe from eavesdropping and changes on the way: `https`, or `http` on this machine."""
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1"))


def is_reserved(name: str) -> bool:
    """Return whether only the sender may set a header; many servers treat `_` in a name as `-`."""
    return _plain(name) in _OURS


def steers(name: str) -> bool:
    """Return whether a header affects routing, or has several values, so that it must not contain an argument."""
    return _plain(name) in ("host", "cookie")


def is_key_header(name: str) -> bool:
    """Return whether a header can contain a key: its name is valid, and it does not describe the request."""
    return bool(TOKEN.fullmatch(name)) and not is_reserved(name) and not steers(name)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
