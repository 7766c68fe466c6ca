"""Classifies HTTP responses that are not MCP messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...observability.redaction import is_secret_name, mask
from ...values.json import Json
from ...values.terminal import to_one_line
from ...values.units import parse_retry_after
from .batches import find_excess

if TYPE_CHECKING:
    import httpx2

    from ..rpc.mcp_error import MCPError
    from .replies import HttpRequest, Reply

OPENING: Final = frozenset({"initialize", "server/discover"})
"""The methods that start a connection. A server without a valid MCP response to them is not an MCP server."""

SESSION: Final = "mcp-session-id"
"""The session ID header (MCP 2025-11-25, basic/transports, "Session Management")."""

_LONGEST: Final = 300
_LONGEST_TEXT: Final = 200
"""The maximum length of quoted error text, in characters."""

_FOR_PEOPLE: Final = ("detail", "error_description", "message", "error", "title")
"""Members of a JSON error that contain readable text (RFC 9457, section 3.1; RFC 6749, section 5.2)."""

_BETWEEN: Final = re.compile(r"[\s;,]+|=(?=\w)")
"""Separators between a scheme and its token (RFC 9110, section 11.4), and between cookies."""

_FIELD: Final = re.compile(r'\b(error|error_description|scope)=(?:"([^"]+)"|([^\s,]+))')
"""The parameters of a challenge that explain the refusal (RFC 6750, section 3)."""

_SHORTEST: Final = 8
"""The minimum length of a token; shorter words, such as `Bearer`, are not secrets."""

_LATER: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, *range(500, 600)}) - {
    HTTPStatus.NOT_IMPLEMENTED  # static file servers, for instance, send it for every POST
}
"""Statuses for temporary errors."""

_BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""Statuses for an overloaded server (RFC 6585, section 4; RFC 9110, section 15.6.4)."""

_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
_PATH: Final = "check the path, which is `/mcp` on most servers"
_HOST: Final = "add it to the server's allowed hosts, in a generated server with `--allow-host`"
_SSE: Final = f"{_PATH}; HTTP+SSE, the MCP 2024-11-05 transport, is not supported"

Kind: TypeAlias = Literal[
    "unauthorized", "forbidden", "not_found", "not_mcp", "session_lost", "unreachable", "refused", "busy"
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP response that is not an MCP response.

    Attributes:
        kind: The exception class to raise.
        url: The request URL, without possible secrets.
        why: The problem, as a predicate whose subject is the URL.
        status: The HTTP status, or `None` without a response.
        challenge: The `WWW-Authenticate` header, or `None`.
        data: The `data` from the server's JSON-RPC error.
        session: The lost session's ID, or `None` for other problems.
        retry_after: Seconds from the `Retry-After` header, or `None`.
    """

    kind: Kind
    url: str
    why: str
    status: int | None = None
    challenge: str | None = None
    data: Any = None
    session: str | None = None
    retry_after: float | None = None

    def to_error(self, error: MCPError) -> MCPError:
        """Create the exception that replaces `error`, with the same code."""
        from ..core import connect_errors

        if self.kind == "busy":
            busy = connect_errors.Busy(error.code, error.message, self.data)
            busy.status, busy.retry_after = self.status, self.retry_after
            return busy
        kinds: dict[Kind, type[connect_errors.ConnectError]] = {
            "unauthorized": connect_errors.Unauthorized,
            "forbidden": connect_errors.Forbidden,
            "not_found": connect_errors.NotFound,
            "not_mcp": connect_errors.NotMCP,
            "session_lost": connect_errors.SessionLost,
            "unreachable": connect_errors.Unreachable,
            "refused": connect_errors.ConnectError,
        }
        refusal = kinds[self.kind](self.url, self.why, status=self.status, code=error.code, data=self.data)
        refusal.retry_after = self.retry_after
        if isinstance(refusal, connect_errors.Unauthorized | connect_errors.Forbidden):
            refusal.challenge = self.challenge
        return refusal


Refusals: TypeAlias = dict[str, Refusal]
"""Refusals by request ID, as text."""


def hide_secrets(url: httpx2.URL) -> str:
    """Remove possible secrets from a URL."""
    return to_one_line(str(url.copy_with(userinfo=b"", query=None, fragment=None)))


def find_refusal(request: HttpRequest, response: Reply, method: str, body: bytes) -> Refusal | None:
    """Return the refusal in a response, or `None` for an MCP response and for any other JSON-RPC error.

    Args:
        request: The request.
        response: The response to it.
        method: The request's MCP method.
        body: The body if it is JSON, or the start of plain text or a problem (RFC 9457); otherwise empty.
    """
    from mcp_types import METHOD_NOT_FOUND

    status, url = response.status, hide_secrets(request.url)
    challenge = response.headers.get("www-authenticate")
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    hide = partial(mask, secrets=_list_secrets(request))  # some servers echo the request in errors
    message = "" if media == "text/plain" else hide(_error_message(body))
    excerpt = "" if message or response.is_success else _shorten_text(hide(_find_text(body, media)), status)
    text = message or excerpt
    if status == HTTPStatus.UNAUTHORIZED:
        bare = "" if "authorization" in request.headers else "the request had no token"
        why = f"returns {_phrase(status)}{_join_reasons(bare, *map(hide, _reasons(response)), text)}"
        return Refusal("unauthorized", url, why, status, challenge)
    if status == HTTPStatus.FORBIDDEN:
        why = f"returns {_phrase(status)}{_join_reasons(*map(hide, _reasons(response)), text)}"
        return Refusal("forbidden", url, why, status, challenge)
    if status == HTTPStatus.MISDIRECTED_REQUEST:
        host = to_one_line(request.headers["host"])[:_LONGEST]
        why = f"returns {_phrase(status)}: it does not serve the host `{host}`; {_HOST}"
        return Refusal("refused", url, why, status)
    session = request.headers.get(SESSION)
    # A 404 for an unknown method does not mean that the session is lost.
    if status == HTTPStatus.NOT_FOUND and session is not None and _error_field(body, "code") != METHOD_NOT_FOUND:
        why = f"no longer recognizes the client's session: it returns {_phrase(status)}{_join_reasons(text)}"
        return Refusal("session_lost", url, why, status, session=session)
    seconds = parse_retry_after(response.headers.get("retry-after"))
    if message and status in _BUSY:
        return Refusal("busy", url, message, status, retry_after=seconds)
    is_of_mcp = response.is_success and (_is_message(body) or find_excess(body) is not None)
    if message or is_of_mcp or media == "text/event-stream":
        return None
    shown = f"{_phrase(status)}{f' ({to_one_line(media)[:_LONGEST]})' if media else ''}{_join_reasons(excerpt)}"
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST and "location" in response.headers:
        shown += f", which redirects to {to_one_line(hide(response.headers['location']))[:_LONGEST]!r}"
    if status in _LATER:
        return Refusal("unreachable", url, f"returns {shown}", status, retry_after=seconds)
    is_of_sse = status == HTTPStatus.METHOD_NOT_ALLOWED or request.url.path.rstrip("/").endswith("/sse")
    advice = _SSE if is_of_sse else _PATH
    if status in _ABSENT:
        return Refusal("not_found", url, f"does not exist: it returns {shown}; {advice}", status)
    # A generated server, for instance, returns 400 for an unknown toolset.
    if status == HTTPStatus.BAD_REQUEST and isinstance(_error(body), str):
        return Refusal("refused", url, f"returns {_phrase(status)}{_join_reasons(excerpt)}", status)
    if method in OPENING:
        return Refusal("not_mcp", url, f"is not an MCP endpoint: it returns {shown}; {advice}", status)
    if response.is_success:
        origin = "; a proxy may have sent it" if media == "text/html" else ""
        return Refusal("not_mcp", url, f"returns {shown} instead of an MCP message{origin}", status)
    return Refusal("refused", url, f"returns {shown}", status)


def _list_secrets(request: HttpRequest) -> Sequence[str]:
    """Return the strings in a request that could be secrets, such as tokens."""
    values = [value for name, value in request.headers.items() if name == SESSION or is_secret_name(name)]
    words = [word for value in values for word in _BETWEEN.split(value) if word == value or len(word) >= _SHORTEST]
    return [*words, *(value for _, value in request.url.params.multi_items()), request.url.password]


def _phrase(status: int) -> str:
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def _find_text(body: bytes, media: str) -> str:
    """Return the readable text in a body: the JSON object's member for people, or else the whole body."""
    value = None if media == "text/plain" else _parse(body)
    if isinstance(value, dict):
        for name in _FOR_PEOPLE:
            if isinstance(text := value.get(name), str) and text:
                return text
    return body.decode(errors="replace")


def _shorten_text(text: str, status: int) -> str:
    """Shorten text to one line. Return an empty string if the text only repeats the status."""
    text = " ".join(text.split())
    if _phrase(status).casefold().endswith(f" {text.rstrip('.').casefold()}"):
        return ""
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _reasons(response: Reply) -> list[str]:
    """Return the reasons that `WWW-Authenticate` gives for a refusal (RFC 6750, section 3)."""
    challenge = response.headers.get("www-authenticate") or ""
    fields = {name: quoted or plain for name, quoted, plain in _FIELD.findall(challenge)}
    error, description, scope = (fields.get(name) for name in ("error", "error_description", "scope"))
    reasons = [error or "", description or "", f"it requires the scopes `{scope}`" if scope else ""]
    return reasons if any(reasons) or not challenge else [f"it requests `{challenge}`"]


def _join_reasons(*parts: str) -> str:
    lines = [to_one_line(part)[:_LONGEST] for part in dict.fromkeys(parts) if part]
    return f": {'; '.join(lines)}" if lines else ""


def _error_message(body: bytes) -> str:
    text = _error_field(body, "message")
    return text if isinstance(text, str) else ""


def _error_field(body: bytes, name: str) -> Json:
    error = _error(body)
    return error.get(name) if isinstance(error, dict) else None


def _error(body: bytes) -> Json:
    message = _parse(body)
    return message.get("error") if isinstance(message, dict) else None


def _is_message(body: bytes) -> bool:
    message = _parse(body)
    return isinstance(message, dict) and message.get("jsonrpc") == "2.0"


def _parse(body: bytes) -> Json:
    from pydantic_core import from_json

    try:
        value: Json = from_json(body)
    except ValueError:
        return None
    return value
