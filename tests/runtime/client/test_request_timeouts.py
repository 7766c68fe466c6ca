"""The timeouts of concurrent requests, which share one alarm, on a clock that jumps to the next event."""

import asyncio
import selectors
import weakref
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import REQUEST_TIMEOUT

from stubwright_runtime.client.core.pending_requests import PendingRequests
from stubwright_runtime.client.rpc.mcp_error import MCPError


class JumpingSelector(selectors.SelectSelector):
    """Advances the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        self.now += 0 if ready else timeout or 0
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer."""

    def __init__(self) -> None:
        self.clock = JumpingSelector()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now


class Plan(NamedTuple):
    """A request: when it starts, its timeout and how long the server takes."""

    start: int
    timeout: int | None
    duration: int

    def find_end(self, questions: Sequence[tuple[int, int]]) -> tuple[float, bool]:
        """Return when the request ends and whether it is late, if clocks stop during the questions."""
        if self.timeout is None:
            return self.start + self.duration, False
        now, left = float(self.start), float(self.timeout)
        for start, end in questions:
            if end > now and now + left > start:
                left -= max(start - now, 0)
                now = max(end, now)
        late = now + left
        return (late, True) if late < self.start + self.duration else (self.start + self.duration, False)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(main)


async def measure(in_flight: PendingRequests, plan: Plan) -> tuple[float, bool]:
    code = None
    await asyncio.sleep(plan.start)
    try:
        with in_flight.request(plan.timeout):
            await asyncio.sleep(plan.duration)
    except MCPError as error:
        code = error.code
    return asyncio.get_running_loop().time(), code == REQUEST_TIMEOUT


async def ask(in_flight: PendingRequests, start: int, end: int) -> None:
    await asyncio.sleep(start)
    with in_flight.pause_for_question():
        await asyncio.sleep(end - start)


# Modulo 4, starts and questions are 0, timeouts 1 and durations 3, so that no request is late as it ends.
_TIMES = st.integers(0, 20).map(lambda number: 4 * number)
_PLANS = st.builds(
    Plan,
    _TIMES,
    st.none() | st.integers(0, 20).map(lambda number: 4 * number + 1),
    st.integers(0, 20).map(lambda number: 4 * number + 3),
)


@given(st.lists(_PLANS, min_size=1, max_size=6), st.lists(_TIMES, max_size=4, unique=True).map(sorted))
def test_each_request_has_its_own_timeout(plans: list[Plan], times: list[int]) -> None:
    questions = [(start, end) for start, end in zip(times[::2], times[1::2], strict=False)]

    async def main() -> list[tuple[float, bool]]:
        in_flight = PendingRequests(expects_questions=True)
        in_flight.start()
        asking = [asyncio.create_task(ask(in_flight, *question)) for question in questions]
        ended = await asyncio.gather(*(measure(in_flight, plan) for plan in plans))
        await asyncio.gather(*asking)
        in_flight.close()
        return ended

    assert run(main()) == [plan.find_end(questions) for plan in plans]


@pytest.mark.parametrize("is_closed_first", [False, True])
def test_a_closed_client_leaves_no_timer(is_closed_first: bool) -> None:
    async def main() -> weakref.ref[PendingRequests]:
        in_flight = PendingRequests(expects_questions=False)
        in_flight.start()
        with in_flight.request(60):
            if is_closed_first:
                in_flight.close()
        in_flight.close()
        return weakref.ref(in_flight)

    async def both() -> None:
        assert (await main())() is None

    run(both())
