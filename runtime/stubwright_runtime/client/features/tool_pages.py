"""The methods of a client whose tools give pages: all items, page after page.

Takes a method that gives one page; gives the same, with `pages`, which follows `next`. Pages without an end, and those
that go round in a circle, end with an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import update_wrapper
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
)

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)

_PAGES: Final = 10_000
"""How many pages are followed."""


class EndlessPages(Exception):
    """The pages of a tool have no end: one leads back to another, or there are too many."""


class Page(Protocol[Item_co]):
    """What a tool with pages gives."""

    @property
    def items(self) -> Sequence[Item_co]:
        """The items of this page."""
        ...

    @property
    def next(self) -> str | None:
        """The cursor of the next page; None if this is the last."""
        ...


class Pages(Generic[Item]):
    """All items of all pages, in order, each page asked for when it is needed: `async for item in …`."""

    def __init__(self, fetch: Callable[[str | None], Coroutine[Any, Any, Page[Item]]]) -> None:
        """Take what gives a page by its cursor, `None` for the first."""
        self._fetch = fetch

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Yield the items.

        Raises:
            EndlessPages: A page leads back to another, or there are more than 10,000.
        """
        async for page in self.by_page():
            for item in page.items:
                yield item

    async def by_page(self) -> AsyncIterator[Page[Item]]:
        """Yield the pages themselves, each the model that the method returns.

        Raises:
            EndlessPages: A page leads back to another, or there are more than 10,000.
        """
        seen: set[str | None] = set()
        cursor: str | None = None
        while len(seen) < _PAGES:
            page = await self._fetch(cursor)
            yield page
            seen.add(cursor)
            cursor = page.next
            if cursor is None:
                return
            if cursor in seen:
                raise EndlessPages("the pages go round in a circle: one has the `next` of another")
        raise EndlessPages(f"there are more than {_PAGES:,} pages")


class PagedMethod(Generic[P, T_co]):
    """The method of a tool with pages: called, it gives one page; `pages` gives them all."""

    def __init__(self, method: Callable[P, Coroutine[Any, Any, T_co]]) -> None:
        """Take the method that gives one page."""
        self._method = method
        update_wrapper(self, method)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co:
        """Fetch one page."""
        return await self._method(*args, **kwargs)

    def pages(self: PagedMethod[P, Page[Item]], *args: P.args, **kwargs: P.kwargs) -> Pages[Item]:
        """Iterate over all items, from the page that the arguments ask for on; the arguments are the method's.

        Example:
            `async for item in client.list_items.pages(status="open")`; the pages are in `….pages(…).by_page()`.
        """
        method: Callable[..., Coroutine[Any, Any, Page[Item]]] = self._method

        async def fetch(cursor: str | None) -> Page[Item]:
            return await method(*args, **(kwargs if cursor is None else {**kwargs, "cursor": cursor}))

        return Pages(fetch)


class Paged(Generic[P, T]):
    """What stands in the class of a client for the method of a tool with pages."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        """Take the function."""
        self._method = method
        self.__doc__ = method.__doc__

    def __call__(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Call the function."""
        return self._method(instance, *args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type[object]) -> Paged[P, T]: ...

    @overload
    def __get__(self, instance: object, owner: type[object]) -> PagedMethod[P, T]: ...

    def __get__(self, instance: object | None, owner: type[object]) -> Paged[P, T] | PagedMethod[P, T]:
        """Return the method of a client."""
        return self if instance is None else PagedMethod(self._method.__get__(instance, owner))


def paged(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Paged[P, T]:
    """Decorate the method of a tool with pages."""
    return Paged(method)
