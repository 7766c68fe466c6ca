"""Exceptions for a server that cannot be reached.

    MCPError
    └── ConnectError      the server cannot be reached, or its HTTP server answers for it
        ├── Unauthorized  the server requires a valid token (401)
        ├── Forbidden     the server does not allow this to this caller (403)
        ├── NotFound      the path does not exist (404, 410)
        ├── NotMCP        the server does not speak MCP
        ├── SessionLost   the client's session expired, and a new one failed (404)
        ├── Unreachable   no answer, or a gateway answers for the server (5xx, 408, 429)
        ├── ServerNotFound  the command cannot be started
        └── ServerExited  the command ended

Opening a connection and any later request may raise them.
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
    """A server cannot be reached, or a proxy in front of it refuses the request.

    Attributes:
        target: The URL, without user, password and query; or the program that was started.
        why: The problem, as a sentence that continues the target.
        status: The HTTP status of the answer; `None` without an answer. A `ServerExited` has the exit status.
        retry_after: The seconds to wait before a retry (`Retry-After` of a 408, 429 or 5xx); `None` without.
    """

    retry_after: float | None = None

    def __init__(
        self, target: str, why: str, *, status: int | None = None, code: int = CONNECTION_CLOSED, data: Any = None
    ) -> None:
        """Create an error from the target and the reason."""
        super().__init__(code, replace_controls(f"`{target}` {why}"), data)
        self.target = target
        self.why = replace_controls(why)
        self.status = status

    def __reduce__(self) -> Any:
        """Copy and pickle all attributes."""
        return _copy, (type(self), self.args, self.__dict__)


class Unauthorized(ConnectError):
    """The server answered with 401: it requires a token, or rejected this one.

    Attributes:
        challenge: Its `WWW-Authenticate` header (RFC 6750, section 3); `None` without.
    """

    challenge: str | None = None


class Forbidden(ConnectError):
    """The server answered with 403: the caller lacks permission.

    Attributes:
        challenge: Its `WWW-Authenticate` header, which may name the missing scopes (RFC 6750, section 3.1); `None`
            without.
    """

    challenge: str | None = None


class NotFound(ConnectError):
    """The HTTP server does not serve the URL's path (404, 410). The request was not run."""


class NotMCP(ConnectError):
    """The server at the URL does not speak MCP, such as a web site."""


class SessionLost(ConnectError):
    """The client's session expired (404), and a new session failed, too.

    The request was not run. The next request tries to start a session again.
    """


class Unreachable(ConnectError):
    """The server is unavailable: the connection failed or broke, or the server is late or overloaded.

    If there was an answer (408, 429, 5xx), `status` is its status. The request may have been run, unless `why` reports
    that the server cannot be reached.
    """


class Busy(MCPError):
    """The server is busy: it answered with a JSON-RPC error and HTTP status 429 or 503. Try again later.

    Attributes:
        status: The HTTP status.
        retry_after: The seconds to wait before a retry (`Retry-After`); `None` without.
    """

    status: int | None = None
    retry_after: float | None = None


class ServerNotFound(ConnectError):
    """The command cannot be started: the program or its folder is missing, or it is not executable."""


class ServerExited(ConnectError):
    """The command ended, or closed its standard output.

    Attributes:
        status: Its exit status; the negative number of the signal that ended it; `None` if it still runs.
        stderr: The last lines that it wrote to standard error.
        withheld: The names of environment variables that the command was not passed, and may have needed.
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
        """Create an error with the last lines of standard error, and the variables that may be missing."""
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
