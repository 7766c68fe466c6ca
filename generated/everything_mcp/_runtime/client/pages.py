# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""A list of the server, page by page.

Takes a way to fetch one page; gives the pages. A list without an end, and one that goes round in a circle, ends with
an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from .bounds import MAX_RESULT_BYTES, Bounds, TooLargeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_types import PaginatedResult

_Page = TypeVar("_Page", bound="PaginatedResult")

_PAGES: Final = 1000
"""How many pages a list may have."""


async def fetch_pages(
    fetch: Callable[[str | None], Awaitable[_Page]], most: int | None = MAX_RESULT_BYTES
) -> AsyncIterator[_Page]:
    """All pages (MCP 2025-11-25, server/utilities/pagination).

    Args:
        fetch: Takes the cursor of a page, `None` for the first.
        most: Bytes that all pages may have together; `None` for no bound. One page is bounded where it is read.

    Raises:
        mcp.MCPError: There is too much, or a cursor comes again.
    """
    from mcp import MCPError
    from mcp_types import INVALID_REQUEST

    cursor: str | None = None
    seen: set[str] = set()
    bounds = Bounds(None, most)
    for _ in range(_PAGES):
        page = await fetch(cursor)
        cursor = page.next_cursor
        if cursor is not None or seen:
            try:
                bounds.add(len(page.model_dump_json()))
            except TooLargeError as error:
                raise MCPError(code=INVALID_REQUEST, message=f"{error} in the pages of one list") from None
        yield page
        if cursor is None:
            return
        if cursor in seen:
            message = f"the server's list goes round in a circle: the cursor {cursor[:100]!r} comes again"
            raise MCPError(code=INVALID_REQUEST, message=message)
        seen.add(cursor)
    raise MCPError(code=INVALID_REQUEST, message=f"the server's list has more than {_PAGES} pages")
