"""Normalizes equivalent URLs (RFC 3986, 6.2)."""

from __future__ import annotations

import re
from typing import Final

_URL: Final = re.compile(r"(https?)://([^/?#@]+)(.*)", re.IGNORECASE | re.DOTALL)
_PORTS: Final = {"http": ":80", "https": ":443"}


def normalize_url(text: str) -> str:
    """Normalize an HTTP URL and return any other string unchanged.

    The scheme and host become lower case (RFC 3986, 6.2.2.1), a default port is removed, and an empty path becomes `/`
    (6.2.3). Other paths do not change: `/mcp` and `/mcp/` differ.

    Args:
        text: A URL or another identifier, such as `api://notes`.
    """
    match = _URL.fullmatch(text)
    if match is None:
        return text
    scheme, rest = match[1].lower(), match[3]
    return f"{scheme}://{match[2].lower().removesuffix(_PORTS[scheme])}{rest if rest.startswith('/') else f'/{rest}'}"
