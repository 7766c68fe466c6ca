"""URLs that differ in their text and are the same (RFC 3986, 6.2)."""

from __future__ import annotations

import re
from typing import Final

_URL: Final = re.compile(r"(https?)://([^/?#@]+)(.*)", re.IGNORECASE | re.DOTALL)
_PORTS: Final = {"http": ":80", "https": ":443"}


def normalize_url(text: str) -> str:
    """Return an HTTP URL in a form that is equal for equivalent URLs; any other text is returned unchanged.

    The scheme and the host are in lower case (RFC 3986, 6.2.2.1), the default port is omitted, and an empty path is `/`
    (6.2.3), as clients that parse URLs write it. Other paths are not changed: `/mcp` and `/mcp/` differ.

    Args:
        text: A URL, or another name, such as `api://notes`.
    """
    match = _URL.fullmatch(text)
    if match is None:
        return text
    scheme, rest = match[1].lower(), match[3]
    return f"{scheme}://{match[2].lower().removesuffix(_PORTS[scheme])}{rest if rest.startswith('/') else f'/{rest}'}"
