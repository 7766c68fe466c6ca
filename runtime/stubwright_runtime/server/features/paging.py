"""Pagination of tool results (`paginate`): cursors contain the next page's position, encrypted.

A cursor is valid only for the same tool, caller and remaining arguments, so handlers receive only positions that they
returned themselves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...mcp.vocabulary import CURSOR, NEXT_CURSOR
from ...observability.logs import log
from ...state.store import StateLost
from ...state.store_sealing import StoreSealing
from ...values.json import is_object
from ..core.outcomes import Outcome, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...package import Tool
    from ...state.sealing import Call, StateSealer
    from ..core.feature import ServerContext
    from ..core.principal import Principal
    from ..core.request import Handle, Request
    from .context import Context

HOLDS: Final = 24 * 3600.0
"""The lifetime of a cursor in seconds. It is long, because a model may continue hours later and a cursor uses no
memory.
"""

_LONGEST: Final = 2048
"""The maximum size of a position in bytes, so that the cursor fits the `inputSchema`."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The page that a call requests.

    Attributes:
        position: The `nextCursor` that the handler returned with the previous page; `None` for the first page.
        size: The manifest's page size.
    """

    position: str | None
    size: int

    @classmethod
    def from_context(cls, context: Context, /) -> PageRequest:
        """Return the page that the context's call requests."""
        paging: PageCall = context._request.page
        return paging.request


@dataclass(frozen=True, slots=True)
class PageCall:
    """A call of a paginated tool: the requested page, and the arguments with the cursor."""

    arguments: Mapping[str, Any]
    request: PageRequest
    _call: Call
    _sealing: StateSealer

    def seal(self, data: Any) -> Any:
        """Return a handler's result with the next page's position, if any, encrypted as a cursor.

        Raises:
            ValueError: The position is too long, or is the position of this page, which would repeat forever.
        """
        position = data.get(NEXT_CURSOR) if is_object(data) else None
        if not isinstance(position, str):
            return data
        if (length := len(position.encode("utf-8", "surrogatepass"))) > _LONGEST:
            raise ValueError(f"the position of the next page has {length:,} bytes; the limit is {_LONGEST:,}")
        if position == self.request.position:
            raise ValueError(f"the next page starts at the same position as this page, {position!r}")
        return {**data, NEXT_CURSOR: self._sealing.seal(position, self._call, time.time())}


class Cursors:
    """One server's cursors. All processes that use the same store share the keys."""

    def __init__(self, server: ServerContext) -> None:
        self._sealing = StoreSealing(server.store, server.package.manifest["server"]["name"], HOLDS, "cursor")

    def wrap(self, tool: Tool, call_next: Handle) -> Handle:
        """Wrap a tool's calls to decrypt the cursor and to refuse invalid cursors."""
        if not tool.is_paginated:
            return call_next
        size: int = tool.extension["paginate"]["size"]

        async def call(request: Request) -> Outcome:
            page = await self._open(tool, size, request.arguments, request.principal)
            if isinstance(page, Outcome):
                return page
            request.page, request.arguments = page, _omit_cursor(request.arguments)
            return await call_next(request)

        return call

    async def _open(self, tool: Tool, size: int, values: Mapping[str, Any], principal: Principal) -> PageCall | Outcome:
        """Return the requested page, or the outcome if the cursor is invalid.

        Raises:
            StateLost: The store, which contains the keys, is unavailable.
        """
        from ...state.sealing import Call, InvalidStateError

        sealing = await self._sealing.renew()
        if sealing is None:
            raise StateLost("cannot encrypt the cursor")
        arguments = _omit_cursor(values)
        call = Call("tools/call", {"name": tool.name, "arguments": arguments}, principal.client_key)
        position: str | None = None
        if CURSOR in values:
            try:
                position = sealing.open(values[CURSOR], call, time.time())
            except InvalidStateError as error:
                log().warning("rejected a cursor for %s: %s", tool.name, error)
                return refuse(
                    f"The cursor is not valid for this call to {tool.name}: it has expired, was changed, or is "
                    "for other arguments. Start again without `cursor`.",
                    "invalid",
                    "cursor",
                )
        return PageCall(values, PageRequest(position, size), call, sealing)


def _omit_cursor(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != CURSOR}
