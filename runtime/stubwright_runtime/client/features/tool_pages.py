"""Iterates over the pages of paginated tools, and detects endless and cyclic pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from operator import attrgetter
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

from ...mcp.vocabulary import CURSOR, NEXT_CURSOR
from .deprecation import report_deprecated, split_deprecated

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)

_PAGES: Final = 10_000
"""The maximum number of pages of one call."""


class EndlessPages(Exception):
    """A tool's pages form a cycle, or their number exceeds the limit."""


class Page(Protocol[Item_co]):
    """A page of a paginated tool."""

    @property
    def items(self) -> Sequence[Item_co]:
        """The items on this page."""
        ...

    @property
    def next(self) -> str | None:
        """The next page's cursor, or `None` if this is the last page."""
        ...


class Pages(Generic[Item, T]):
    """The items on all pages, fetched on demand: `async for item in …`."""

    def __init__(
        self,
        fetch: Callable[[str | None], Coroutine[Any, Any, T]],
        items: Callable[[T], Sequence[Item]],
        following: Callable[[T], str | None],
    ) -> None:
        """Create the pages; the functions fetch the page at a cursor, list its items, and find the next cursor."""
        self._fetch = fetch
        self._items = items
        self._following = following

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Yield the items.

        Raises:
            EndlessPages: The pages form a cycle, or there are more than 10,000.
        """
        async for page in self.by_page():
            for item in self._items(page):
                yield item

    async def by_page(self) -> AsyncIterator[T]:
        """Yield each page, as the model that the tool's method returns.

        Raises:
            EndlessPages: The pages form a cycle, or there are more than 10,000.
        """
        seen: set[str | None] = set()
        cursor: str | None = None
        while len(seen) < _PAGES:
            page = await self._fetch(cursor)
            yield page
            seen.add(cursor)
            cursor = self._following(page)
            if cursor is None:
                return
            if cursor in seen:
                raise EndlessPages("the pages form a cycle: a cursor repeats")
        raise EndlessPages(f"there are more than {_PAGES:,} pages")


class PagedMethod(Protocol[P, T_co]):
    """A paginated tool's method. A call returns one page; `pages` iterates over all items."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T_co]:
        """Fetch one page."""
        ...

    def pages(self: PagedMethod[P, Page[Item]], *args: P.args, **kwargs: P.kwargs) -> Pages[Item, Page[Item]]:
        """Iterate over all items, starting with the page that the arguments select; takes the method's arguments.

        Example:
            `async for item in client.list_items.pages(status="open")`; use `….pages(…).by_page()` for whole pages.
        """
        ...


class OwnPagedMethod(Protocol[P, T, Item]):
    """A paginated tool's method whose pages have their items under a name other than `items`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Fetch one page."""
        ...

    def pages(self, *args: P.args, **kwargs: P.kwargs) -> Pages[Item, T]:
        """Iterate over all items, starting with the page that the arguments select; takes the method's arguments.

        Example:
            `async for book in client.list_books.pages(genre="novel")`; use `….pages(…).by_page()` for whole pages.
        """
        ...


def _make_fetch(
    method: Callable[..., Coroutine[Any, Any, T]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[[str | None], Coroutine[Any, Any, T]]:
    async def fetch(cursor: str | None) -> T:
        return await method(*args, **(kwargs if cursor is None else {**kwargs, CURSOR: cursor}))

    return fetch


class _Descriptor(Generic[P, T]):
    """A descriptor for a paginated method. Subclasses of clients can call the descriptor like the method itself."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._method, self._deprecation = split_deprecated(method)
        self.__doc__ = method.__doc__

    def __call__(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        report_deprecated(self._deprecation)
        return self._method(instance, *args, **kwargs)

    def _bind(
        self,
        instance: object,
        list_items: Callable[[Any], Sequence[Any]],
        find_cursor: Callable[[Any], str | None],
    ) -> Any:
        """Return a client's bound method: a function with a `pages` attribute.

        The bound method must be a function, because the OpenAI Agents SDK's `function_tool` rejects any other object
        with `__wrapped__`.
        """
        method, deprecation = self._method.__get__(instance), self._deprecation

        @wraps(method)
        async def fetch_page(*args: Any, **kwargs: Any) -> Any:
            report_deprecated(deprecation)
            return await method(*args, **kwargs)

        def pages(*args: Any, **kwargs: Any) -> Pages[Any, Any]:
            report_deprecated(deprecation)
            return Pages(_make_fetch(method, args, kwargs), list_items, find_cursor)

        vars(fetch_page)["pages"] = pages
        return fetch_page


class PagedMethodDescriptor(_Descriptor[P, T]):
    """A descriptor for a paginated tool's method in a client class."""

    @overload
    def __get__(self, instance: None, owner: type[object]) -> PagedMethodDescriptor[P, T]: ...

    @overload
    def __get__(self, instance: object, owner: type[object]) -> PagedMethod[P, T]: ...

    def __get__(self, instance: object | None, owner: type[object]) -> PagedMethodDescriptor[P, T] | PagedMethod[P, T]:
        """Return the method bound to a client."""
        if instance is None:
            return self
        bound: PagedMethod[P, T] = self._bind(instance, attrgetter("items"), attrgetter("next"))
        return bound


def paged(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> PagedMethodDescriptor[P, T]:
    """Wrap a paginated tool's method in a descriptor."""
    return PagedMethodDescriptor(method)


class NamedPagesDescriptor(_Descriptor[P, T], Generic[P, T, Item]):
    """A descriptor for a paginated tool's method whose pages have their items under a name other than `items`."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], items: str) -> None:
        super().__init__(method)
        self._items = items

    @overload
    def __get__(self, instance: None, owner: type[object]) -> NamedPagesDescriptor[P, T, Item]: ...

    @overload
    def __get__(self, instance: object, owner: type[object]) -> OwnPagedMethod[P, T, Item]: ...

    def __get__(
        self, instance: object | None, owner: type[object]
    ) -> NamedPagesDescriptor[P, T, Item] | OwnPagedMethod[P, T, Item]:
        """Return the method bound to a client."""
        if instance is None:
            return self
        bound: OwnPagedMethod[P, T, Item] = self._bind(
            instance, lambda page: getattr(page, self._items) or (), attrgetter(NEXT_CURSOR)
        )
        return bound


class PagedBy(Generic[Item]):
    """A decorator for a paginated tool's method that names the field with a page's items: `PagedBy("books")`.

    `Item` cannot be inferred from the name. Generated code uses a cast, which avoids importing the model.
    """

    def __init__(self, items: str) -> None:
        self._items = items

    def __call__(
        self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]
    ) -> NamedPagesDescriptor[P, T, Item]:
        """Wrap a paginated tool's method in a descriptor."""
        return NamedPagesDescriptor(method, self._items)
