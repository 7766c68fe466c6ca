"""Retries calls whose responses are lost, for tools with the policy `once: {key: request}`.

All attempts use the same idempotency key, so the server runs the call once.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from ..core.connect_errors import Busy, ConnectError, SessionLost, Unreachable
from ..core.options import TIMEOUT
from .mcp_error import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...package import Tool
    from ..core.options import Options

_Answer = TypeVar("_Answer")

_ATTEMPTS: Final = 3
"""The number of attempts that fit into a timeout if all responses are lost."""

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
"""The minimum and maximum delay before a retry, in seconds (exponential backoff with jitter)."""

_PASSING: Final = frozenset({None, 502, 503, 504})
"""Gateway statuses after which the server may have received the call; `None` means no response."""


def accepts_key(tool: Tool) -> bool:
    """Return whether a tool accepts an idempotency key from the client."""
    once: Mapping[str, Any] = tool.policy.get("once") or {}
    return once.get("key") == "request"


async def send_until_answered(
    send: Callable[[Options], Awaitable[_Answer]],
    options: Options,
    *,
    is_detached: bool,
    is_open: Callable[[], bool],
) -> _Answer:
    """Send a call, and retry within the call's timeout if the response is lost.

    Args:
        send: Sends the call once.
        options: `timeout` limits all attempts together; if it is not set, retries stop after 60 seconds.
        is_detached: Whether the server continues a call after its client disconnects. If so, each attempt gets part
            of the timeout.
        is_open: Returns whether the connection is still usable, so that a retry can succeed.

    Raises:
        MCPError: The server returned an error, or the last attempt failed.
    """
    timeout, number = options.timeout, 0
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        seconds = None if end is None or timeout is None else max(0.001, end - time.monotonic())
        if seconds is not None and timeout is not None and is_detached:
            seconds = min(seconds, timeout / _ATTEMPTS)
        try:
            return await send(options.with_changes(timeout=seconds if timeout is not None else None))
        except MCPError as error:
            if not is_open() or not _is_lost(error):
                raise
            end = time.monotonic() + TIMEOUT if end is None else end
            retry_after = getattr(error, "retry_after", None) or 0.0
            pause = max(retry_after, min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE) * random.uniform(0.5, 1.0))
            if time.monotonic() + pause >= end:
                if error.code == REQUEST_TIMEOUT and number:
                    message = f"the server did not respond within {timeout} seconds, in {number + 1} attempts"
                    raise MCPError(code=REQUEST_TIMEOUT, message=message) from None
                raise
        number += 1
        await asyncio.sleep(pause)


def _is_lost(error: MCPError) -> bool:
    """Return whether the response was lost, so that a retry can succeed."""
    if isinstance(error, Unreachable | Busy):
        return error.status in _PASSING
    if isinstance(error, ConnectError):
        return isinstance(error, SessionLost)
    return error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT)
