"""The current request, available in every part of a server."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stubwright_runtime.mcp.revisions import Revision
from stubwright_runtime.observability.scope import SCOPE
from stubwright_runtime.server.core.request import Request, find_request
from stubwright_runtime.server.execution.cancellation import Cancellation
from stubwright_runtime.server.execution.threads import Threads

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def make_request(**fields: Any) -> Request:
    unused: Any = None
    defaults: dict[str, Any] = {
        "package": "p",
        "method": "tools/call",
        "id": 1,
        "params": {"name": "t"},
        "revision": Revision.from_date("2025-11-25"),
        "transport": "stdio",
        "threads": Threads(),
        "open_channel": unused,
        "call_next": unused,
    }
    return Request(**{**defaults, **fields})


async def test_a_thread_and_the_event_loop_share_the_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a function that a handler gives in its thread could be added to a second one, and never be called."""
    makers = list[int]()

    class Noted(Cancellation):
        def __init__(self) -> None:
            makers.append(threading.get_ident())
            super().__init__()

    monkeypatch.setattr("stubwright_runtime.server.core.request.Cancellation", Noted)
    request, called = make_request(), list[str]()
    await request.run_in_thread(lambda: request.cancellation.add(lambda: called.append("told")))
    request.cancellation.cancel()
    assert (makers, called) == ([threading.get_ident()], ["told"])


async def test_what_few_requests_need_is_made_when_it_is_first_read() -> None:
    opened: list[Any] = []

    def open_channel(request: Request) -> Any:
        opened.append(request)
        return object()

    request = make_request(open_channel=open_channel)
    assert (opened, request._cancellation, request.rounds) == ([], None, None)
    assert request.channel is request.channel
    assert opened == [request]


async def test_a_request_that_is_over_holds_no_message() -> None:
    request = make_request(open_channel=lambda _: object())
    request.arguments = {"a": 1}
    assert request.channel is not None
    request.close()
    assert (request.params, request.arguments, request._channel, request.has_ended) == ({}, {}, None, True)
    request.cancel()
    assert not request.is_cancelled


async def test_the_request_is_the_current_scope() -> None:
    assert find_request() is None
    request = make_request()
    token = SCOPE.set(request)
    assert find_request() is request
    SCOPE.reset(token)
