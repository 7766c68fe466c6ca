"""Exceptions for an unreachable server.

MCPError
└── ConnectError        the server cannot be reached, or a proxy responds in its place
    ├── Unauthorized    the server requires a valid token (401)
    ├── Forbidden       the caller lacks permission (403)
    ├── NotFound        the path does not exist (404, 410)
    ├── NotMCP          the server does not speak MCP
    ├── SessionLost     the session expired (404), and starting a new one failed
    ├── Unreachable     no response, or a gateway responds for the server (5xx, 408, 429)
    ├── ServerNotFound  the command cannot be started
    └── ServerExited    the command exited

Connecting and any later request can raise these exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_types import CONNECTION_CLOSED

from ...values.terminal import replace_controls
from ..rpc.mcp_error import MCPError
from .environment import describe_withheld

if TYPE_CHECKING:
    from collections.abc import Sequence


class ConnectError(MCPError):
    """A server cannot be reached, or a proxy in front of the server rejects the request.

    Attributes:
        target: The URL without user, password and query, or the program that was started.
        why: The problem, as a predicate whose subject is the target.
        status: The HTTP status, or `None` without a response. For `ServerExited`, the exit status.
        retry_after: Seconds to wait before a retry (`Retry-After` of a 408, 429 or 5xx response), or `None`.
    """

    retry_after: float | None = None

    def __init__(
        self, target: str, why: str, *, status: int | None = None, code: int = CONNECTION_CLOSED, data: Any = None
    ) -> None:
        """Create an error from the target and the problem."""
        super().__init__(code, replace_controls(f"`{target}` {why}"), data)
        self.target = target
        self.why = replace_controls(why)
        self.status = status

    def __reduce__(self) -> Any:
        """Preserve all attributes when copied or pickled."""
        return _copy, (type(self), self.args, self.__dict__)


class Unauthorized(ConnectError):
    """The server returned 401: the request had no token, or the server rejected it.

    Attributes:
        challenge: The `WWW-Authenticate` header (RFC 6750, section 3), or `None`.
    """

    challenge: str | None = None


class Forbidden(ConnectError):
    """The server returned 403: the caller lacks permission.

    Attributes:
        challenge: The `WWW-Authenticate` header, which can list the missing scopes (RFC 6750, section 3.1), or `None`.
    """

    challenge: str | None = None


class NotFound(ConnectError):
    """The HTTP server does not serve the URL's path (404, 410). The request was not processed."""


class NotMCP(ConnectError):
    """The server at the URL, such as a website, does not speak MCP."""


class SessionLost(ConnectError):
    """The client's session expired (404), and starting a new session also failed.

    The request was not processed. The next request tries to start a new session.
    """


class Unreachable(ConnectError):
    """The server is unavailable: the connection failed or broke, or the server timed out or is overloaded.

    After a response (408, 429, 5xx), `status` is its HTTP status. The request may have been processed, unless `why`
    reports that the server cannot be reached.
    """


class Busy(MCPError):
    """The server is busy: it returned a JSON-RPC error with HTTP status 429 or 503. Try again later.

    Attributes:
        status: The HTTP status.
        retry_after: Seconds to wait before a retry (`Retry-After`), or `None`.
    """

    status: int | None = None
    retry_after: float | None = None


class ServerNotFound(ConnectError):
    """The command cannot be started: the program or working directory is missing, or the program is not executable."""


class ServerExited(ConnectError):
    """The command exited, or closed its standard input or output.

    Attributes:
        status: The exit status; the negated signal number if a signal killed the command; `None` if it is still
            running.
        stderr: The last lines of the command's standard error.
        withheld: Names of environment variables that the command was not passed but may have needed.
    """

    def __init__(
        self,
        target: str,
        why: str,
        *,
        status: int | None = None,
        stderr: Sequence[str] = (),
        withheld: Sequence[str] = (),
    ) -> None:
        """Create an error that shows the last lines of standard error and possibly missing variables."""
        lines = [why, *(f"  | {line}" for line in stderr)]
        if withheld:
            lines.append(f"  {describe_withheld(withheld, 'the parameter `env`')}")
        super().__init__(target, "\n".join(lines), status=status)
        self.why = replace_controls(why)
        self.stderr = tuple(stderr)
        self.withheld = tuple(withheld)


def _copy(kind: type[ConnectError], args: tuple[Any, ...], attributes: dict[str, Any]) -> ConnectError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error
