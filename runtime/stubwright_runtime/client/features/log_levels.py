"""Sets a server's log level, once per connection (MCP 2025-11-25, server/utilities/logging).

In MCP 2026-07-28 and later, each request contains the level.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...observability.logs import log
from ...values.terminal import to_one_line

if TYPE_CHECKING:
    from ...mcp.vocabulary import LogLevel
    from ..core.options import Options
    from ..core.session import Session

_SECONDS: Final = 10.0
"""The maximum timeout in seconds; the connection works even without a response."""


async def request_log_level(session: Session, level: LogLevel, options: Options) -> None:
    """Set the log level on a server that declares `logging` in an older revision; log a warning if it is rejected."""
    from ..rpc.mcp_error import MCPError

    if session.modern or session.client.server_capabilities.logging is None:
        return
    try:
        await _set_level(session, level, options)
    except MCPError as error:
        why = to_one_line(error.message)
        log().warning("the server rejected the log level %s and uses its own: %s", level, why)


async def _set_level(session: Session, level: LogLevel, options: Options) -> None:
    from mcp_types import EmptyResult, SetLevelRequest, SetLevelRequestParams

    seconds = _SECONDS if options.timeout is None else min(_SECONDS, options.timeout)
    request = SetLevelRequest(params=SetLevelRequestParams(level=level))
    await session.send(request, EmptyResult, replace(options, timeout=seconds), allows_questions=False)
