"""Iterates over the pages of tools with pagination, and detects endless and cyclic pages."""

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
"""The maximum number of pages."""


class EndlessPages(Exception):
    """The pages of a tool are cyclic, or too many."""


class Page(Protocol[Item_co]):
    """A page of a paginated tool."""

    @property
    def items(self) -> Sequence[Item_co]:
        """The items of this page."""
        ...

    @property
    def next(self) -> str | None:
        """The cursor of the next page; None if this is the last."""
        ...


class Pages(Generic[Item, T]):
    """The items of all pages, fetched when they are needed: `async for item in …`."""

    def __init__(
        self,
        fetch: Callable[[str | None], Coroutine[Any, Any, T]],
        items: Callable[[T], Sequence[Item]],
        following: Callable[[T], str | None],
    ) -> None:
        """Use functions that fetch a page by its cursor, and that return its items and its next cursor."""
        self._fetch = fetch
        self._items = items
        self._following = following

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Yield the items.

        Raises:
            EndlessPages: The pages are circular, or there are more than 10,000.
        """
        async for page in self.by_page():
            for item in self._items(page):
                yield item

    async def by_page(self) -> AsyncIterator[T]:
        """Yield the pages, each as the model that the method returns.

        Raises:
            EndlessPages: The pages are circular, or there are more than 10,000.
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
    """The method of a paginated tool. A call returns one page; `pages` iterates over all."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T_co]:
        """Fetch one page."""
        ...

    def pages(self: PagedMethod[P, Page[Item]], *args: P.args, **kwargs: P.kwargs) -> Pages[Item, Page[Item]]:
        """Iterate over all items, from the page that the arguments ask for on; the arguments are the method's.

        Example:
            `async for item in client.list_items.pages(status="open")`; the pages are in `….pages(…).by_page()`.
        """
        ...


class OwnPagedMethod(Protocol[P, T, Item]):
    """The method of a paginated tool whose pages have another name for `items`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Fetch one page."""
        ...

    def pages(self, *args: P.args, **kwargs: P.kwargs) -> Pages[Item, T]:
        """Iterate over all items, from the page that the arguments ask for on; the arguments are the method's.

        Example:
            `async for book in client.list_books.pages(genre="novel")`; the pages are in `….pages(…).by_page()`.
        """
        ...


def _make_fetch(
    method: Callable[..., Coroutine[Any, Any, T]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[[str | None], Coroutine[Any, Any, T]]:
    """Return a function that fetches a page by its cursor (`None` for the first), with the same arguments."""

    async def fetch(cursor: str | None) -> T:
        return await method(*args, **(kwargs if cursor is None else {**kwargs, CURSOR: cursor}))

    return fetch


class _Descriptor(Generic[P, T]):
    """A descriptor for a paginated method. Subclasses can call it like the function."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        """Wrap the function."""
        self._method, self._deprecation = split_deprecated(method)
        self.__doc__ = method.__doc__

    def __call__(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Call the function."""
        report_deprecated(self._deprecation)
        return self._method(instance, *args, **kwargs)

    def _bind(
        self,
        instance: object,
        list_items: Callable[[Any], Sequence[Any]],
        find_cursor: Callable[[Any], str | None],
    ) -> Any:
        """Return the method of a client: a function with the attribute `pages`.

        It is a function because `function_tool` of the OpenAI Agents SDK refuses other objects with `__wrapped__`.
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
    """A descriptor for the method of a paginated tool in the class of a client."""

    @overload
    def __get__(self, instance: None, owner: type[object]) -> PagedMethodDescriptor[P, T]: ...

    @overload
    def __get__(self, instance: object, owner: type[object]) -> PagedMethod[P, T]: ...

    def __get__(self, instance: object | None, owner: type[object]) -> PagedMethodDescriptor[P, T] | PagedMethod[P, T]:
        """Return the method of a client."""
        if instance is None:
            return self
        bound: PagedMethod[P, T] = self._bind(instance, attrgetter("items"), attrgetter("next"))
        return bound


def paged(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> PagedMethodDescriptor[P, T]:
    """Decorate the method of a paginated tool."""
    return PagedMethodDescriptor(method)


class NamedPagesDescriptor(_Descriptor[P, T], Generic[P, T, Item]):
    """A descriptor for the method of a paginated tool whose pages have another name for `items`."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], items: str) -> None:
        """Wrap the function, and the name of the items."""
        super().__init__(method)
        self._items = items

    @overload
    def __get__(self, instance: None, owner: type[object]) -> NamedPagesDescriptor[P, T, Item]: ...

    @overload
    def __get__(self, instance: object, owner: type[object]) -> OwnPagedMethod[P, T, Item]: ...

    def __get__(
        self, instance: object | None, owner: type[object]
    ) -> NamedPagesDescriptor[P, T, Item] | OwnPagedMethod[P, T, Item]:
        """Return the method of a client."""
        if instance is None:
            return self
        bound: OwnPagedMethod[P, T, Item] = self._bind(
            instance, lambda page: getattr(page, self._items) or (), attrgetter(NEXT_CURSOR)
        )
        return bound


class PagedBy(Generic[Item]):
    """A decorator for the method of a paginated tool whose pages have another name for `items`: `PagedBy("books")`.

    `Item` cannot be inferred from the name. Generated code uses a cast, which does not import the model.
    """

    def __init__(self, items: str) -> None:
        """Create a decorator for the name of the items."""
        self._items = items

    def __call__(
        self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]
    ) -> NamedPagesDescriptor[P, T, Item]:
        """Decorate the method."""
        return NamedPagesDescriptor(method, self._items)
