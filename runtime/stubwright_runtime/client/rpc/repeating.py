"""Calls that are sent again if their answers are lost: tools whose policy has `once: {key: request}`.

Each attempt has the same key, so the server runs the call once, and answers a later attempt with the first result.
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
"""The number of attempts whose answers can be waited for within a timeout, if none of them comes."""

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
"""Seconds before the first retry, and the longest pause: doubled each time, with jitter so that clients spread out."""

_PASSING: Final = frozenset({None, 502, 503, 504})
"""The statuses of answers of a gateway whose server may have got the call; `None` without an answer."""


def takes_key(tool: Tool) -> bool:
    """Return whether calls of a tool have a key of the client's."""
    once: Mapping[str, Any] = tool.policy.get("once") or {}
    return once.get("key") == "request"


async def send_until_answered(
    send: Callable[[Options], Awaitable[_Answer]],
    options: Options,
    *,
    can_leave: bool,
    is_open: Callable[[], bool],
) -> _Answer:
    """Send a call, and again within its timeout if the answer is lost.

    Args:
        send: Sends the call once.
        options: Their `timeout` limits all attempts together; without one, a lost call is repeated for 60 seconds.
        can_leave: Whether the server continues a call after its client has closed the connection. If so, an attempt
            gets a part of the timeout.
        is_open: Returns whether the connection can be used.

    Raises:
        MCPError: The answer of the server; or the last attempt was lost.
    """
    timeout, number = options.timeout, 0
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        seconds = None if end is None or timeout is None else max(0.001, end - time.monotonic())
        if seconds is not None and timeout is not None and can_leave:
            seconds = min(seconds, timeout / _ATTEMPTS)
        try:
            return await send(options.with_changes(timeout=seconds if timeout is not None else None))
        except MCPError as error:
            if not is_open() or not _is_lost(error):
                raise
            end = time.monotonic() + TIMEOUT if end is None else end
            asked = getattr(error, "retry_after", None) or 0.0
            pause = max(asked, min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE) * random.uniform(0.5, 1.0))
            if time.monotonic() + pause >= end:
                if error.code == REQUEST_TIMEOUT and number:
                    message = f"the server did not answer in {timeout} seconds, in {number + 1} attempts"
                    raise MCPError(code=REQUEST_TIMEOUT, message=message) from None
                raise
        number += 1
        await asyncio.sleep(pause)


def _is_lost(error: MCPError) -> bool:
    """Return whether an answer is missing that another attempt may receive."""
    if isinstance(error, Unreachable | Busy):
        return error.status in _PASSING
    if isinstance(error, ConnectError):
        return isinstance(error, SessionLost)
    return error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT)
