"""Fast path for common request headers; `headers.py` handles the rest."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ....mcp.parameter_headers import decode_value
from ....mcp.revisions import HANDSHAKES, UNNAMED, Revision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION: Final = b"mcp-protocol-version"
"""The revision header (MCP 2025-06-18, basic/transports, "Protocol Version Header")."""

_KNOWN: Final = frozenset(
    {
        b"accept",
        b"content-type",
        b"host",
        b"mcp-method",
        b"mcp-name",
        VERSION,
        b"mcp-session-id",
        b"origin",
        b"content-encoding",
        b"transfer-encoding",
    }
)
_LONGEST: Final = 256
"""The maximum length of a cached header in bytes."""

_HEADS: Final = 1024
"""The maximum number of cached heads."""

_DIGITS: Final = 6
"""The maximum number of digits in a Content-Length on the fast path."""

_JSON: Final = b"application/json"

LARGEST: Final = 1024 * 1024
"""The maximum body size on the fast path in bytes."""

Foreign: TypeAlias = Literal["Host", "Origin"]

NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameters that `Mcp-Name` mirrors, by method (MCP 2026-07-28, basic/transports, "Standard Headers")."""


class Head(NamedTuple):
    """One request's relevant headers; the first value if a header is repeated.

    Attributes:
        session: The session ID.
        revision: The revision.
        method: The value of `Mcp-Method`.
        name: The decoded value of `Mcp-Name`; `None` if it is missing or its encoding is invalid.
        last_event: The value of `Last-Event-ID`; only in a GET.
        has_parameters: True if headers mirror arguments (`Mcp-Param-…`).
        duplicate: The first repeated header that mirrors the body.
        traceparent: The caller's trace (W3C Trace Context).
        is_stateless: True if the revision has no handshake, or is unknown.
    """

    session: str | None
    revision: str | None
    method: str | None
    name: str | None
    last_event: str | None = None
    has_parameters: bool = False
    duplicate: str | None = None
    traceparent: str | None = None
    is_stateless: bool = False


class Allowlist:
    """The allowed hosts or origins (MCP 2025-11-25, basic/transports, "Security Warning").

    Schemes and hosts are case-insensitive (RFC 9110, 4.2.3).
    """

    def __init__(self, names: Sequence[str], *, all_: bool) -> None:
        """Create an allowlist.

        Args:
            names: The hosts or origins; `:*` matches any port.
            all_: True to allow all.
        """
        self._names = [name.lower().encode() for name in names]
        self._all = all_
        self.allows = lru_cache(256)(self._allows)

    def permits(self, name: bytes) -> bool:
        """Return whether a host or origin is allowed; long names are not cached."""
        return self.allows(name) if len(name) <= _LONGEST else self._allows(name)

    def _allows(self, name: bytes) -> bool:
        lower = name.lower()
        return self._all or any(
            lower == allowed or (allowed.endswith(b":*") and lower.startswith(allowed[:-1])) for allowed in self._names
        )


@lru_cache(256)
def _accepts(value: bytes) -> bool:
    """Return whether a client accepts both JSON and event streams."""
    kinds = {kind.split(b";")[0].strip().lower() for kind in value.split(b",")}
    return {b"application/json", b"text/event-stream"} <= kinds


def is_json(value: bytes) -> bool:
    """Return whether a Content-Type is JSON, in any case and with any parameters (RFC 8259)."""
    return value == _JSON or value.partition(b";")[0].strip().lower() == _JSON


def parse_revision(named: str | None) -> Revision:
    """Return the revision in a header; without a header, `UNNAMED`."""
    return Revision.from_date(named or UNNAMED)


def find_version(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return the revision in a request's headers, if any."""
    return next((value.decode("latin-1") for name, value in headers if name == VERSION), None)


def names_stateless(revision: str | None) -> bool:
    """Return whether the revision in a header has no handshake or is unknown."""
    return revision is not None and revision not in HANDSHAKES


class Heads:
    """Parses the common headers of POST requests, with a cache, because clients repeat their headers.

    Attributes:
        hosts: The allowed hosts.
        origins: The allowed origins.
    """

    def __init__(self, hosts: Allowlist, origins: Allowlist) -> None:
        """Create an endpoint's parser."""
        self.hosts = hosts
        self.origins = origins
        self._read_known = lru_cache(_HEADS)(self._parse)

    def read(self, headers: Sequence[tuple[bytes, bytes]]) -> Head | None:
        """Parse a POST's headers; return `None` if any is uncommon or invalid."""
        known: list[tuple[bytes, bytes]] = []
        length = trace = None
        for pair in headers:
            name, value = pair
            if name in _KNOWN:
                if len(value) > _LONGEST:
                    return None
                known.append(pair)
            elif name == b"content-length":
                if length is not None or not value.isdigit() or len(value) > _DIGITS:
                    return None
                length = value
            elif name == b"traceparent":
                if trace is not None:
                    return None
                trace = value
            elif name[:4] == b"mcp-":
                return None
        head = self._read_known(tuple(known))
        return head if head is None or trace is None else head._replace(traceparent=trace.decode("latin-1"))

    def _parse(self, headers: tuple[tuple[bytes, bytes], ...]) -> Head | None:
        fields = dict(headers)
        if (
            len(fields) < len(headers)
            or not is_json(fields.get(b"content-type", b""))
            or not _accepts(fields.get(b"accept", b""))
            or not fields.get(b"host")
            or not self.hosts.allows(fields[b"host"])
            or (b"origin" in fields and not self.origins.allows(fields[b"origin"]))
            or b"content-encoding" in fields
        ):
            return None
        revision = _text(fields.get(VERSION))
        return Head(
            _text(fields.get(b"mcp-session-id")),
            revision,
            _text(fields.get(b"mcp-method")),
            decode_value(_text(fields.get(b"mcp-name"))),
            is_stateless=names_stateless(revision),
        )


def find_forbidden(
    headers: Sequence[tuple[bytes, bytes]], hosts: Allowlist, origins: Allowlist
) -> tuple[Foreign, bytes] | None:
    """Return the header whose host or origin is not allowed; `None` if all are allowed."""
    named = [value for name, value in headers if name == b"host"] or [b""]
    for value in named:
        if not hosts.permits(value):
            return "Host", value
    for name, value in headers:
        if name == b"origin" and not origins.permits(value):
            return "Origin", value
    return None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
