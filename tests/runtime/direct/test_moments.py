"""Slow requests are answered on a stream; one timer serves all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stubwright_runtime.server.transports.http.post_handler import StreamTimer

pytestmark = pytest.mark.anyio

MOMENT = 0.05


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Post:
    """A request that notes when it switches to a stream."""

    def __init__(self, number: int, moved: Callable[[int], None]) -> None:
        self.switch_to_stream = lambda: moved(number)


async def test_those_that_end_in_time_stay_and_the_others_go_in_order() -> None:
    moments, moved, all_moved = StreamTimer(MOMENT), list[Any](), asyncio.Event()

    def move(number: int) -> None:
        moved.append(number)
        if len(moved) == 3:
            all_moved.set()

    posts: list[Any] = [Post(number, move) for number in range(4)]
    for post in posts[:2]:
        moments.begin(post)
    await asyncio.sleep(MOMENT / 2)
    for post in posts[2:]:
        moments.begin(post)
    moments.end(posts[0])
    assert moved == []
    async with asyncio.timeout(60):
        await all_moved.wait()
    assert moved == [1, 2, 3]


async def test_one_timer_serves_all_and_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, made = asyncio.get_running_loop(), list[float]()
    call_at = loop.call_at

    def counted(when: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        made.append(when)
        return call_at(when, *arguments, **options)

    moments = StreamTimer(MOMENT)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_at", counted)
        for number in range(1000):
            post: Any = Post(number, lambda _: pytest.fail("it has ended"))
            moments.begin(post)
            moments.end(post)
        assert len(made) == 1
    await asyncio.sleep(2 * MOMENT)
    assert moments._timer is None
    assert not moments._ends
