"""Parses HTTP headers, validates them, and checks them against the message (MCP 2025-11-25 and 2026-07-28,
basic/transports, "Streamable HTTP").
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ....mcp.errors import HEADER_MISMATCH, INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, ProtocolError
from ....mcp.parameter_headers import PREFIX, decode_value
from ....mcp.revisions import HANDSHAKES
from ....mcp.vocabulary import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from ....values.sanitizing import clean
from ...protocol.messages import get_meta
from ...protocol.refusals import STATELESS
from ...protocol.requests import find_unknown_revision
from .rejections import TOO_LARGE, UNNAMED_SESSION, Rejection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION: Final = b"mcp-protocol-version"
"""The name of the revision header (MCP 2025-06-18, basic/transports, "Protocol Version Header")."""

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
"""The maximum size of a cached header in bytes."""

_HEADS: Final = 1024
"""The maximum number of cached header sets."""

_DIGITS: Final = 6
"""The maximum number of digits in a Content-Length on the fast path."""

_Foreign: TypeAlias = Literal["Host", "Origin"]

_NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameters that `Mcp-Name` mirrors, by method (MCP 2026-07-28, basic/transports, "Standard Headers")."""

LARGEST: Final = 4 * 1024 * 1024
"""The maximum body size in bytes."""

_ROUTING: Final = frozenset({VERSION, b"mcp-method", b"mcp-name"})
"""The headers that mirror the body (MCP 2026-07-28, basic/transports, "Standard Headers")."""

_PARAMETER: Final = PREFIX.lower().encode()

_TASK_METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")
"""The methods for which `Mcp-Name` is the task ID (tasks extension, "Streamable HTTP: Routing Headers")."""

_FORBIDDEN: Final = {"Host": Rejection(421, "Invalid Host header"), "Origin": Rejection(403, "Invalid Origin header")}
_ALLOW_HINTS: Final = {
    "Host": "use `--allow-host`, or `allowed_hosts` in `asgi_app`",
    "Origin": "use `--allow-origin`, or `allowed_origins` in `asgi_app`",
}
_MAX_LOGGED: Final = 100
"""The maximum number of a header's bytes to log."""

_NO_TYPE: Final = Rejection(400, "Invalid Content-Type header")
_NOT_JSON: Final = Rejection(415, "Unsupported Media Type: Content-Type must be application/json", INVALID_REQUEST)
_NEEDS_BOTH: Final = "Not Acceptable: Client must accept both application/json and text/event-stream"
_ACCEPTS_NOT_BOTH: Final = Rejection(406, _NEEDS_BOTH, INVALID_REQUEST)
_ENCODED: Final = Rejection(
    415, "Unsupported Media Type: The body must not be compressed (Content-Encoding)", accepted_encoding="identity"
)
"""The response to a request with a compressed body (RFC 9110, 15.5.16)."""

_ACCEPTS_NO_EVENTS: Final = Rejection(406, "Not Acceptable: Client must accept text/event-stream", INVALID_REQUEST)
_UNKNOWN_REVISION: Final = Rejection(400, "Unsupported protocol version", UNSUPPORTED_PROTOCOL_VERSION)
_NO_SESSIONS: Final = Rejection(405, "Method Not Allowed: This server has no sessions", INVALID_REQUEST, allow="POST")
"""The response that a server without sessions sends to GET and DELETE."""


class Head(NamedTuple):
    """The headers that the server reads from one request; for a repeated header, the first value.

    Attributes:
        session: The session ID, if sent.
        revision: The MCP revision, if sent.
        method: The value of `Mcp-Method`, if sent.
        name: The decoded value of `Mcp-Name`; `None` if it is missing or its encoding is invalid.
        last_event: The value of `Last-Event-ID`; read only from a GET.
        has_parameters: True if headers mirror arguments (`Mcp-Param-…`).
        duplicate: The first repeated header that mirrors the body.
        traceparent: The value of `traceparent` (W3C Trace Context).
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
            all_: True to allow all hosts or origins.
        """
        self._names = [name.lower().encode() for name in names]
        self._all = all_
        self.allows = lru_cache(256)(self._allows)

    def permits(self, name: bytes) -> bool:
        """Return whether a host or origin is allowed; the results for long names are not cached."""
        return self.allows(name) if len(name) <= _LONGEST else self._allows(name)

    def _allows(self, name: bytes) -> bool:
        lower = name.lower()
        return self._all or any(
            lower == allowed or (allowed.endswith(b":*") and lower.startswith(allowed[:-1])) for allowed in self._names
        )


def _is_json(kind: str) -> bool:
    """Return whether a Content-Type is `application/json` in any case, with or without parameters (RFC 8259)."""
    return kind.partition(";")[0].strip().lower() == "application/json"


def find_version(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return the revision in a request's headers, or `None` without a revision header."""
    return next((value.decode("latin-1") for name, value in headers if name == VERSION), None)


class Heads:
    """Parses POST requests' common headers. Results are cached, because clients send equal headers with each request.

    Attributes:
        hosts: The allowed values of the `Host` header.
        origins: The allowed values of the `Origin` header.
    """

    def __init__(self, hosts: Allowlist, origins: Allowlist) -> None:
        """Create the parser of one endpoint."""
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
        fields = {name: value.decode("latin-1") for name, value in headers}
        if (
            len(fields) < len(headers)
            or not fields.get(b"host")
            or _find_forbidden(headers, self.hosts, self.origins) is not None
            or b"content-encoding" in fields
            or not _is_json(fields.get(b"content-type", ""))
            or not all(_accepts(fields))
        ):
            return None
        return _make_head(fields)


def _make_head(fields: Mapping[bytes, str]) -> Head:
    revision = fields.get(VERSION)
    return Head(
        fields.get(b"mcp-session-id"),
        revision,
        fields.get(b"mcp-method"),
        decode_value(fields.get(b"mcp-name")),
        is_stateless=revision is not None and revision not in HANDSHAKES,
    )


def _find_forbidden(
    headers: Sequence[tuple[bytes, bytes]], hosts: Allowlist, origins: Allowlist
) -> tuple[_Foreign, bytes] | None:
    """Return the name of the header that contains a forbidden host or origin, with its value, or `None`."""
    named = [value for name, value in headers if name == b"host"] or [b""]
    for value in named:
        if not hosts.permits(value):
            return "Host", value
    for name, value in headers:
        if name == b"origin" and not origins.permits(value):
            return "Origin", value
    return None


def validate_headers(
    method: str, headers: Sequence[tuple[bytes, bytes]], heads: Heads, *, stateless: bool
) -> Head | Rejection:
    """Return a request's parsed headers, or the rejection if they are invalid.

    Unknown revisions are rejected later, because that response contains the message ID.

    Args:
        method: The HTTP method in upper case.
        headers: All headers, with lower-case names.
        heads: Parses common headers and has the allowed hosts and origins.
        stateless: True if the server has no sessions.
    """
    if method == "POST" and (plain := heads.read(headers)) is not None:
        return plain
    # Checked first, because a forbidden host or origin results in 403 even if the request has other errors (MCP
    # 2025-11-25, basic/transports, "Security Warning").
    if (foreign := _find_forbidden(headers, heads.hosts, heads.origins)) is not None:
        header, sent = foreign
        shown = sent[:_MAX_LOGGED].decode("latin-1")
        return _FORBIDDEN[header]._replace(logged=f"its {header} is {shown!r}; to allow it, {_ALLOW_HINTS[header]}")
    fields: dict[bytes, str] = {}
    duplicate: bytes | None = None
    for name, value in headers:
        if name in fields and name in _ROUTING and duplicate is None:
            duplicate = name
        text = value.decode("latin-1")
        # A list may be split across several lines (RFC 9110, 5.3).
        fields[name] = f"{fields[name]},{text}" if name == b"accept" and name in fields else fields.get(name, text)
    head = _make_head(fields)._replace(
        last_event=fields.get(b"last-event-id") if method == "GET" else None,
        has_parameters=any(name.startswith(_PARAMETER) for name in fields),
        duplicate=None if duplicate is None else duplicate.decode(),
        traceparent=fields.get(b"traceparent"),
    )
    if method == "POST" and fields.get(b"content-encoding", "").strip().lower() not in ("", "identity"):
        return _ENCODED
    if _is_large(fields.get(b"content-length")):
        return TOO_LARGE
    if head.is_stateless:
        return _validate_stateless(method, fields, head.revision) or head
    refused = _validate_handshake(method, fields, stateless=stateless)
    return head if refused is None else refused._replace(session=None if stateless else head.session)


def find_header_error(
    head: Head, message: Mapping[str, Any], headers: Sequence[tuple[bytes, bytes]], *, has_tasks: bool
) -> ProtocolError | None:
    """Return the error for a POST whose headers contradict its message; `None` if they agree.

    The caller then calls `find_stateless_error`, which checks the message itself.

    Args:
        head: The parsed headers.
        message: A well-formed JSON-RPC message.
        headers: All headers, with lower-case names; empty if `Heads.read` parsed them.
        has_tasks: True if the server has tasks; if false, `mcp-name` is not checked for task methods.
    """
    meta = get_meta(message)
    is_request = "id" in message and "method" in message
    is_same = head.revision is not None and meta.get(PROTOCOL_VERSION_META_KEY) == head.revision
    if is_request and not (is_same and head.duplicate is None):
        error = _find_other_revision(head, message, headers)
        if error is not None:
            return error
    if head.revision is None or not head.is_stateless:
        return None
    if "id" not in message:
        return find_unknown_revision(head.revision)
    if not is_request:
        return ProtocolError(INVALID_REQUEST, "Body must be a single JSON-RPC request or notification object")
    if head.duplicate is not None:
        return ProtocolError(HEADER_MISMATCH, f"{head.duplicate} header appears more than once")
    if PROTOCOL_VERSION_META_KEY not in meta or CLIENT_CAPABILITIES_META_KEY not in meta:
        return None
    if head.method != message["method"]:
        return ProtocolError(HEADER_MISMATCH, "mcp-method header does not match the request body's method")
    key = _NAMED.get(message["method"])
    if key is None and has_tasks and message["method"] in _TASK_METHODS and head.revision in STATELESS:
        key = "taskId"
    value = None if key is None else message["params"].get(key)
    if value is None or (key == "taskId" and type(value) is not str) or head.name == value:
        return None
    return ProtocolError(HEADER_MISMATCH, f"mcp-name header does not match the request body's {key!r} parameter")


def _find_other_revision(
    head: Head, request: Mapping[str, Any], headers: Sequence[tuple[bytes, bytes]]
) -> ProtocolError | None:
    """Return the error for a revision in `_meta` that differs from the header, or for a missing header.

    The error code is -32020 (MCP 2026-07-28, "Protocol Version Header").
    """
    meta = get_meta(request)
    if PROTOCOL_VERSION_META_KEY not in meta:
        return None
    in_body = meta[PROTOCOL_VERSION_META_KEY]
    named = [value.decode("latin-1") for name, value in headers if name == VERSION]
    if not named and head.revision is not None:  # the fast path does not pass common headers
        named = [head.revision]
    if named and all(value == in_body for value in named):
        return None
    header = f"is {clean(', '.join(named))!r}" if named else "is missing"
    message = (
        f"The header MCP-Protocol-Version {header}, but {PROTOCOL_VERSION_META_KEY} in _meta is "
        f"{clean(str(in_body))!r}; send the same revision in both"
    )
    return ProtocolError(HEADER_MISMATCH, message)


def _validate_stateless(method: str, fields: Mapping[bytes, str], revision: str | None) -> Rejection | None:
    """Validate the headers of a request in MCP 2026-07-28 or later.

    A GET or DELETE with an unknown revision may belong to a session. Such a request receives 400 instead of 405 (MCP
    2025-11-25, basic/transports, "Protocol Version Header").
    """
    if method in ("GET", "DELETE") and revision not in STATELESS:
        return _UNKNOWN_REVISION
    if method != "POST":
        return Rejection(405, allow="POST")
    if not _begins_as_json(fields):
        return _NO_TYPE
    return None if all(_accepts(fields)) else Rejection(406, _NEEDS_BOTH)


def _validate_handshake(method: str, fields: Mapping[bytes, str], *, stateless: bool) -> Rejection | None:
    """Validate the headers of a request in MCP 2025-11-25 or earlier."""
    if method == "POST":
        if not _begins_as_json(fields):
            return _NO_TYPE
        if not all(_accepts(fields)):
            return _ACCEPTS_NOT_BOTH
        return None if _is_listed_json(fields[b"content-type"]) else _NOT_JSON
    if stateless:
        return _NO_SESSIONS
    if method not in ("GET", "DELETE"):
        return Rejection(405, "Method Not Allowed", INVALID_REQUEST, allow="GET, POST, DELETE")
    if method == "GET" and not _accepts(fields)[1]:
        return _ACCEPTS_NO_EVENTS
    return None if b"mcp-session-id" in fields else UNNAMED_SESSION


def _is_large(length: str | None) -> bool:
    # The size of the received body is checked separately.
    try:
        return length is not None and int(length) > LARGEST
    except ValueError:
        return False


def _begins_as_json(fields: Mapping[bytes, str]) -> bool:
    kind = fields.get(b"content-type", "")
    return _is_json(kind) or kind.lower().startswith("application/json")


def _is_listed_json(kind: str) -> bool:
    return _is_json(kind) or any(part.strip() == "application/json" for part in kind.partition(";")[0].split(","))


def _accepts(fields: Mapping[bytes, str]) -> tuple[bool, bool]:
    """Return whether a client accepts JSON, and whether it accepts event streams.

    Weights are ignored (RFC 9110, 12.5.1).
    """
    kinds = {kind.partition(";")[0].strip().lower() for kind in fields.get(b"accept", "").split(",")}
    return (
        not kinds.isdisjoint(("*/*", "application/*", "application/json")),
        not kinds.isdisjoint(("*/*", "text/*", "text/event-stream")),
    )
