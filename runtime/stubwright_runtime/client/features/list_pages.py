"""Fetches a server's list page by page, and detects endless and cyclic lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from ..transports.bounds import MAX_RESULT_BYTES, Bounds, TooLargeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_types import PaginatedResult

_Any = TypeVar("_Any")
_Page = TypeVar("_Page", bound="PaginatedResult")

MOST_PAGES: Final = 1000
"""The default maximum number of pages."""


class EndlessError(Exception):
    """A list never ends. The message is a predicate whose subject is the list's name."""


class TooManyPagesError(EndlessError):
    """A list has too many pages."""


async def follow_pages(
    fetch: Callable[[str | None], Awaitable[_Any]],
    following: Callable[[_Any], str | None],
    most_pages: int = MOST_PAGES,
) -> AsyncIterator[_Any]:
    """Yield all pages of a list, and detect endless lists.

    Only a missing cursor ends the list; an empty cursor is followed (MCP 2026-07-28, server/utilities/pagination).

    Args:
        fetch: Fetches a page by its cursor; `None` for the first.
        following: Returns a page's next cursor; `None` for the last.
        most_pages: The maximum number of pages.

    Raises:
        EndlessError: There are too many pages, or a cursor repeats.
    """
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(most_pages):
        page = await fetch(cursor)
        cursor = following(page)
        yield page
        if cursor is None:
            return
        if cursor in seen:
            fix = "" if cursor else "; omit `nextCursor` on the last page instead of leaving it empty"
            raise EndlessError(f"is cyclic: the cursor {cursor[:100]!r} repeats{fix}")
        seen.add(cursor)
    raise TooManyPagesError(f"has more than {most_pages} pages")


async def fetch_pages(
    fetch: Callable[[str | None], Awaitable[_Page]],
    most: int | None = MAX_RESULT_BYTES,
    most_pages: int = MOST_PAGES,
) -> AsyncIterator[_Page]:
    """Yield a list's pages, and limit their number and their total size.

    Args:
        fetch: Fetches a page by its cursor; `None` for the first.
        most: The maximum total size of several pages in bytes; `None` for no limit. A single page is limited when it is
            read.
        most_pages: The maximum number of pages.

    Raises:
        MCPError: The list is too large or never ends.
    """
    from mcp_types import INVALID_REQUEST

    from ..rpc.mcp_error import MCPError

    bounds = Bounds(None, most)
    is_only = True
    try:
        async for page in follow_pages(fetch, lambda page: page.next_cursor, most_pages):
            is_only = is_only and page.next_cursor is None
            if not is_only:
                _count_bytes(bounds, page)
            yield page
    except EndlessError as error:
        raise MCPError(code=INVALID_REQUEST, message=f"the server's list {error}") from error


def _count_bytes(bounds: Bounds, page: PaginatedResult) -> None:
    from mcp_types import INVALID_REQUEST

    from ..rpc.mcp_error import MCPError

    try:
        bounds.add(len(page.model_dump_json()))
    except TooLargeError as error:
        raise MCPError(code=INVALID_REQUEST, message=f"{error} in the pages of one list") from error
