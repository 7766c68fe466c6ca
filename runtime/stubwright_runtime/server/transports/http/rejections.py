"""The responses to requests with invalid headers."""

from __future__ import annotations

from typing import Final, NamedTuple

from ....mcp.errors import INVALID_REQUEST, ProtocolError
from ....mcp.revisions import UNNAMED, Revision
from ...protocol.messages import encode_error
from .events import Response


class Rejection(NamedTuple):
    """The response to a request with invalid headers.

    Attributes:
        status: The HTTP status code.
        text: The reason, as the error message or the plain-text body.
        code: The JSON-RPC error code; `None` for a plain-text body.
        allow: The value of the response's `Allow` header.
        session: The session ID in the request's header. If the session does not exist, the response is `NO_SESSION`
            (404) instead.
        logged: The reason to log, if changing the configuration could fix the error.
        accepted_encoding: The value of the response's `Accept-Encoding` header.
    """

    status: int
    text: str = ""
    code: int | None = None
    allow: str | None = None
    session: str | None = None
    logged: str | None = None
    accepted_encoding: str | None = None

    def answer(self, named: str | None = None) -> Response:
        """Return the HTTP response; `named` is the revision in the request's header, if any."""
        error = None if self.code is None else ProtocolError(self.code, self.text)
        body = self.text.encode() if error is None else encode_error(None, error, parse_revision(named))
        kind = b"text/plain; charset=utf-8" if error is None else b"application/json"
        instead = ((b"allow", self.allow), (b"accept-encoding", self.accepted_encoding))
        allowed = ((name, value.encode()) for name, value in instead if value is not None)
        headers = (*(((b"content-type", kind),) if body else ()), (b"content-length", b"%d" % len(body)), *allowed)
        return Response(self.status, headers, body)


UNNAMED_SESSION: Final = Rejection(400, "Bad Request: Missing session ID", INVALID_REQUEST)
"""The response to a request without the required session ID."""

NO_SESSION: Final = Rejection(404, "Session not found", INVALID_REQUEST)
"""The response to a request whose session does not exist or belongs to another caller."""

TOO_LARGE: Final = Rejection(413, "Request body too large")
"""The response to a request whose body is too large."""


def parse_revision(named: str | None) -> Revision:
    """Return the revision in a request's header, or `UNNAMED` without a header."""
    return Revision.from_date(named or UNNAMED)
