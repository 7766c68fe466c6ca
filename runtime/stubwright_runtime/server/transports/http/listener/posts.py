"""Fast path for the heads of common POST requests.

The HTTP parser handles any head that could be interpreted in two ways (RFC 9112, 11.2).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LARGEST: Final = 4096
"""The maximum head size for the fast path, in bytes."""

END: Final = b"\r\n\r\n"

_LINE: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([!-~](?:[ -~]*[!-~])?)[ \t]*")
"""A header with an ASCII value (RFC 9110, 5.5 and 5.6.2)."""

_DECISIVE: Final = frozenset({b"connection", b"expect", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
"""The headers that change a message's framing or control the connection."""


class Post(NamedTuple):
    """The head of a POST request.

    Attributes:
        headers: All headers, with lower-case names.
        length: The body size in bytes.
    """

    headers: tuple[tuple[bytes, bytes], ...]
    length: int


def read_post(head: bytes, path: bytes) -> Post | None:
    """Parse the head of a POST request to a path; return `None` if the HTTP parser must handle the request.

    Args:
        head: The bytes before the empty line.
        path: The only accepted path.
    """
    request, *lines = head.split(b"\r\n")
    if request != b"POST %b HTTP/1.1" % path:
        return None
    headers: list[tuple[bytes, bytes]] = []
    lengths: list[bytes] = []
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        name, value = match[1].lower(), match[2]
        if name == b"content-length":
            lengths.append(value)
        elif name in _DECISIVE and (name, value.lower()) != (b"connection", b"keep-alive"):
            return None
        headers.append((name, value))
    if len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 8:
        return None
    # RFC 9112, 3.2: any other number is an error, which the parser refuses.
    if [name for name, _ in headers].count(b"host") != 1:
        return None
    return Post(tuple(headers), int(lengths[0]))
