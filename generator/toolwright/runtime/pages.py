"""A list of the server, page by page.

Takes a way to fetch one page; gives the pages. A list without an end, and one that goes round in a circle, ends with
an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_types import PaginatedResult

_Page = TypeVar("_Page", bound="PaginatedResult")

_PAGES: Final = 1000
"""How many pages a list may have."""


async def pages(fetch: Callable[[str | None], Awaitable[_Page]]) -> AsyncIterator[_Page]:
    """All pages (MCP 2025-11-25, server/utilities/pagination).

    Args:
        fetch: Takes the cursor of a page, `None` for the first.

    Raises:
        RuntimeError: There are too many pages, or a cursor comes again.
    """
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_PAGES):
        page = await fetch(cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            raise RuntimeError(f"the server's list goes round in a circle: the cursor {cursor!r} comes again")
        seen.add(cursor)
    raise RuntimeError(f"the server's list has more than {_PAGES} pages")
