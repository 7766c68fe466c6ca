"""The plain heads of requests over HTTP, which are most; `headers.py` handles all others."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ....mcp.revisions import HANDSHAKES, UNNAMED, Revision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION: Final = b"mcp-protocol-version"
"""The header that names the revision (MCP 2025-06-18, basic/transports, "Protocol Version Header")."""

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
"""The maximum length in bytes of a header whose judgement is cached."""

_HEADS: Final = 1024
"""Heads that are cached."""

_DIGITS: Final = 6
"""Digits of the length of a body that is taken without a closer look."""

_JSON: Final = b"application/json"

LARGEST: Final = 1024 * 1024
"""Bytes of the largest body that is read here."""

Foreign: TypeAlias = Literal["Host", "Origin"]

NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameters that `Mcp-Name` repeats, by method (MCP 2026-07-28, basic/transports, "Standard Headers")."""


class Head(NamedTuple):
    """The headers of one request. The first of several with one name counts.

    Attributes:
        session: The session that it names.
        revision: The revision that it names.
        method: The method that it repeats.
        name: The name that it repeats.
        last_event: The last event that its client has received, in a GET only.
        has_parameters: True if some headers repeat arguments (`Mcp-Param-…`).
        doubled: The first header that occurs twice, among the headers that repeat the body.
        traceparent: The trace of the caller (W3C Trace Context).
        is_stateless: True if it names a revision without a handshake, even an unknown one.
    """

    session: str | None
    revision: str | None
    method: str | None
    name: str | None
    last_event: str | None = None
    has_parameters: bool = False
    doubled: str | None = None
    traceparent: str | None = None
    is_stateless: bool = False


class Allowlist:
    """The hosts, or the origins, whose requests are answered (MCP 2025-11-25, basic/transports, "Security Warning").

    Neither schemes nor hosts distinguish capitals (RFC 9110, 4.2.3).
    """

    def __init__(self, names: Sequence[str], *, all_: bool) -> None:
        """Take them, each at the port that it names, or with `:*` at any; with `all_`, all are answered."""
        self._names = [name.lower().encode() for name in names]
        self._all = all_
        self.allows = lru_cache(256)(self._allows)

    def judge(self, name: bytes) -> bool:
        """Return whether requests of this name are answered; a long name is not cached."""
        return self.allows(name) if len(name) <= _LONGEST else self._allows(name)

    def _allows(self, name: bytes) -> bool:
        lower = name.lower()
        return self._all or any(
            lower == allowed or (allowed.endswith(b":*") and lower.startswith(allowed[:-1])) for allowed in self._names
        )


@lru_cache(256)
def _accepts(value: bytes) -> bool:
    """Return whether a client takes both JSON and a stream of events."""
    kinds = {kind.split(b";")[0].strip().lower() for kind in value.split(b",")}
    return {b"application/json", b"text/event-stream"} <= kinds


def is_json(value: bytes) -> bool:
    """Return whether a Content-Type is JSON, in any case and with any parameters (RFC 8259)."""
    return value == _JSON or value.partition(b";")[0].strip().lower() == _JSON


def find_named(named: str | None) -> Revision:
    """Return the revision that a header names; without one, the revision that the request counts as (`UNNAMED`)."""
    return Revision.from_date(named or UNNAMED)


def names_stateless(revision: str | None) -> bool:
    """Return whether a header names a revision without a handshake, even an unknown one."""
    return revision is not None and revision not in HANDSHAKES


class Heads:
    """The plain heads of POSTs to one endpoint. Most clients repeat theirs, so they are read once.

    Attributes:
        hosts: The hosts whose requests are answered.
        origins: The origins whose requests are answered.
    """

    def __init__(self, hosts: Allowlist, origins: Allowlist) -> None:
        """Take the hosts and the origins whose requests are answered."""
        self.hosts = hosts
        self.origins = origins
        self._read_known = lru_cache(_HEADS)(self._parse)

    def read(self, headers: Sequence[tuple[bytes, bytes]]) -> Head | None:
        """Return the head of a POST with plain headers; `None` if any header is unusual or not acceptable."""
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
            _text(fields.get(b"mcp-name")),
            is_stateless=names_stateless(revision),
        )


def find_foreign(
    headers: Sequence[tuple[bytes, bytes]], hosts: Allowlist, origins: Allowlist
) -> tuple[Foreign, bytes] | None:
    """Return the header of a request that names a host or an origin that is not answered; `None` if there is none."""
    named = [value for name, value in headers if name == b"host"] or [b""]
    for value in named:
        if not hosts.judge(value):
            return "Host", value
    for name, value in headers:
        if name == b"origin" and not origins.judge(value):
            return "Origin", value
    return None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
