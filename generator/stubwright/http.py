"""HTTP rules: parts of URLs, and the header fields and values that a manifest can set."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A header name (RFC 9110, section 5.6.2)."""

CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that are not allowed in a header value (RFC 9110, section 5.5)."""

VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
"""A URL variable in braces, as in OpenAPI paths and RFC 6570 templates."""

_BLANK: Final = re.compile(r"[\s\x00-\x20\x7f{}]")

_OURS: Final = frozenset(
    {"connection", "content-length", "expect", "http2-settings", "keep-alive", "proxy-authenticate"}
    | {"proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers for message framing and connection handling (RFC 9110, sections 7.6.1 and 8.6; RFC 9112, section
6).
"""


def is_url(word: str) -> bool:
    """Return whether a command-line argument starts with an HTTP scheme, in any case (RFC 3986, section 3.1)."""
    return word.lower().startswith(("http://", "https://"))


def split(url: str) -> SplitResult | None:
    """Return the parts of a URL, or None if the host or port is invalid (RFC 3986, section 3.2)."""
    try:
        parts = urlsplit(url)
        is_sound = parts.port != 0
    except ValueError:
        return None
    return parts if is_sound else None


def is_token_url(url: str) -> bool:
    """Return whether secrets can be sent to a token endpoint: over `https`, or locally (RFC 6749, section 3.2)."""
    parts = split(url)
    if parts is None or not parts.hostname or parts.username is not None or parts.fragment or _BLANK.search(url):
        return False
    return is_unseen(parts)


def is_unseen(parts: SplitResult) -> bool:
    """Return whether a URL is safe from eavesdropping and tampering: `https`, or `http` on this machine."""
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1"))


def is_reserved(name: str) -> bool:
    """Return whether a header is reserved for the HTTP client. Many servers treat `_` in a name as `-`."""
    return _normalize_name(name) in _OURS


def steers(name: str) -> bool:
    """Return whether a header affects routing or has several values, so that it must not contain an argument."""
    return _normalize_name(name) in ("host", "cookie")


def is_key_header(name: str) -> bool:
    """Return whether a header can contain an API key: its name is valid, and it does not describe the request."""
    return bool(TOKEN.fullmatch(name)) and not is_reserved(name) and not steers(name)


def _normalize_name(name: str) -> str:
    return name.lower().replace("_", "-")
