"""Plain whole POSTs, read without a parser: most messages come so, one by one.

A head that could be read in two ways (RFC 9112, 11.2) is left to the parser, so that there is no second opinion here on
HTTP.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LARGEST: Final = 4096
"""Bytes of a head that is read here."""

END: Final = b"\r\n\r\n"

_LINE: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([!-~](?:[ -~]*[!-~])?)[ \t]*")
"""A header with a value in ASCII (RFC 9110, 5.5 and 5.6.2)."""

_DECISIVE: Final = frozenset({b"connection", b"expect", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
"""Headers by which a request is read or answered in another way."""


class Post(NamedTuple):
    """The head of a POST.

    Attributes:
        headers: Its headers, with names in lower case.
        length: The bytes of its body.
    """

    headers: tuple[tuple[bytes, bytes], ...]
    length: int


def read_post(head: bytes, path: bytes) -> Post | None:
    """Read the head of a POST to a path; `None` if it is anything else.

    Args:
        head: All before the empty line.
        path: The path of requests.
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
    # RFC 9112, 3.2: any other number is an error, which is not answered here.
    if [name for name, _ in headers].count(b"host") != 1:
        return None
    return Post(tuple(headers), int(lengths[0]))
