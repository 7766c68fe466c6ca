"""Deprecated methods: the line in their warning, and their visibility in frameworks."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import deprecated

from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.client.features.deprecation import split_deprecated
from stubwright_runtime.client.features.tool_pages import PagedBy, paged
from stubwright_runtime.client.tasks.calls import started

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@deprecated("use new_books")
async def _fetch(self: Any, *, cursor: str | None = None) -> Any:
    following = "2" if cursor is None else None
    return SimpleNamespace(books=[cursor], items=[cursor], nextCursor=following, next=following)


class Client(Binding):
    """As generated classes have them."""

    plain: Any = _fetch
    own: Any = PagedBy("books")(_fetch)
    fixed: Any = paged(_fetch)
    task: Any = started(_fetch)


CLIENT = Client.__new__(Client)


@pytest.mark.parametrize("call", ["plain", "own", "fixed", "task"])
async def test_a_deprecated_method_blames_its_caller(call: str) -> None:
    with pytest.warns(DeprecationWarning, match="use new_books") as told:
        await getattr(CLIENT, call)()
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize("call", ["own", "fixed"])
async def test_all_pages_of_a_deprecated_method_blame_its_caller_once(call: str) -> None:
    with pytest.warns(DeprecationWarning, match="use new_books") as told:
        assert [item async for item in getattr(CLIENT, call).pages()] == [None, "2"]
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize("call", ["plain", "own", "fixed"])
def test_frameworks_see_a_coroutine_function(call: str) -> None:
    method = getattr(CLIENT, call)
    assert inspect.isroutine(method)
    assert inspect.iscoroutinefunction(method)
    assert [*inspect.signature(method).parameters] == ["cursor"]
    assert split_deprecated(method)[1] == "use new_books"
