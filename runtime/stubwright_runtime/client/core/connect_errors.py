"""Exceptions for a server that cannot be reached.

    MCPError
    └── ConnectError      the server cannot be reached, or its HTTP server answers for it
        ├── Unauthorized  the server requires a token, or another one (401)
        ├── Forbidden     the server does not allow this to this caller (403)
        ├── NotFound      the server has nothing at this path (404, 410)
        ├── NotMCP        the server does not speak MCP
        ├── SessionLost   the server no longer knows the client's session, nor a new one (404)
        ├── Unreachable   there is no answer, or a gateway answers in the server's place (5xx, 408, 429)
        ├── ServerNotFound  the command cannot be started
        └── ServerExited  the command ended

Each is raised when a connection is opened, and by any request of an open one. They are kinds of `MCPError`, so that
`except MCPError` catches them.
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
        why: What is wrong, as a sentence that continues the target.
        status: The HTTP status of the answer; `None` without an answer. A `ServerExited` has the exit status.
        retry_after: The seconds after which the server asks to try again (`Retry-After`, 408, 429 and 5xx); `None` if
            it does not.
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
        """Copy and pickle it with all that it has."""
        return _copy, (type(self), self.args, self.__dict__)


class Unauthorized(ConnectError):
    """The server answers with 401: it requires a token, or does not accept this one.

    Attributes:
        challenge: Its `WWW-Authenticate` header (RFC 6750, section 3); `None` if it sent none.
    """

    challenge: str | None = None


class Forbidden(ConnectError):
    """The server answers with 403: the caller may not do this.

    Attributes:
        challenge: Its `WWW-Authenticate` header, which names the scopes that are missing, where it knows them (RFC
            6750, section 3.1); `None` if it sent none.
    """

    challenge: str | None = None


class NotFound(ConnectError):
    """The HTTP server has nothing at the path of the URL (404, 410). The request was not run."""


class NotMCP(ConnectError):
    """The server at the URL does not speak MCP, such as a web site."""


class SessionLost(ConnectError):
    """The server does not know the client's session any more (404), and a new one did not help.

    The request was not run. The next request tries again to begin a session.
    """


class Unreachable(ConnectError):
    """The server gives no answer of its own, for now: the connection fails or breaks, or it is late or overloaded.

    Where there was an answer (408, 429, 5xx), `status` has its status. The request may have been run, unless `why`
    specifies that the server cannot be reached.
    """


class Busy(MCPError):
    """The server answers with an error of its own, and with HTTP status 429 or 503: it accepts calls again later.

    Attributes:
        status: The HTTP status.
        retry_after: The seconds after which the server asks to try again (`Retry-After`); `None` if it does not.
    """

    status: int | None = None
    retry_after: float | None = None


class ServerNotFound(ConnectError):
    """The command cannot be started: there is no such program, it is not executable, or its folder is missing."""


class ServerExited(ConnectError):
    """The command ended, or closed its standard output.

    Attributes:
        status: Its exit status; the negative number of the signal that ended it; `None` if it still runs.
        stderr: The last lines that it wrote to standard error.
        withheld: The names of the environment variables that are set here, that it did not get, and may have needed.
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
        """Say which program, how it ended, what it wrote last, and which variables it may have lacked."""
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
