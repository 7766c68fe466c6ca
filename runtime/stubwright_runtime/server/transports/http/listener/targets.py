"""Request targets and their hosts (RFC 9112, 3.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABSOLUTE: Final = re.compile(rb"https?://([^/?#@]+)((?:[/?][^#]*)?)", re.IGNORECASE)
"""An absolute target; user information is not allowed (RFC 9110, 4.2.4)."""

_HOST: Final = b"host"
_SERVER: Final = b"*"
"""The target of a request for the whole server (`OPTIONS *`)."""


class UnclearHostError(ValueError):
    """The host that a request addresses is ambiguous."""


def resolve_target(
    target: bytes, version: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return a target's path and query, and the headers with the effective host.

    A host in the target overrides the Host header (RFC 9112, 3.2.2).

    Args:
        target: The target in the request line.
        version: The HTTP version, such as `1.1`.
        headers: All headers, with lower-case names.

    Raises:
        UnclearHostError: The request has several Host headers, or none in HTTP/1.1 (RFC 9112, 3.2), or the target is
            neither a path nor a URL.
    """
    hosts = sum(name == _HOST for name, _ in headers)
    if hosts > 1 or (hosts == 0 and version == b"1.1"):
        raise UnclearHostError(f"{hosts} Host headers")
    if target.startswith(b"/") or target == _SERVER:
        return target, [*headers]
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        raise UnclearHostError("the target is neither a path nor a URL")
    rest = match[2] if match[2].startswith(b"/") else b"/" + match[2]
    return rest, [(_HOST, match[1]), *((name, value) for name, value in headers if name != _HOST)]
