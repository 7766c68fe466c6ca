"""The maximum rate of a caller's polls of tasks."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import pytest

import amounts
import tasked
from stubwright_runtime.tasks.poll_rates import BURST, PER_SECOND, PollRates
from task_wire import EXTENSION, HANDSHAKE, STATELESS, in_memory
from tasked import Handlers

pytestmark = pytest.mark.anyio

package = tasked.package


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_burst_and_then_so_many_a_second(clock: list[float]) -> None:
    rates = PollRates()
    assert [rates.count("ann") for _ in range(BURST)] == [0.0] * BURST
    assert rates.count("ann") == pytest.approx(1 / PER_SECOND)
    assert rates.count("bob") == 0.0
    clock[0] += 1
    assert [rates.count("ann") for _ in range(PER_SECOND)] == [0.0] * PER_SECOND
    assert rates.count("ann") > 0
    clock[0] += 3600
    assert [rates.count("ann") for _ in range(BURST + 1)].count(0.0) == BURST


def test_what_is_remembered_is_bounded(clock: list[float]) -> None:
    del clock
    rates = PollRates()
    for number in range(30_000):
        rates.count(str(number))
    assert len(rates._left) == 10_000


@pytest.mark.parametrize("revision", amounts.sample([HANDSHAKE, STATELESS], 1))
async def test_who_asks_too_often_is_refused(package: ModuleType, revision: str, clock: list[float]) -> None:
    capabilities: dict[str, Any] = {"extensions": {EXTENSION: {}}} if revision == STATELESS else {}
    async with in_memory(package.build_server(Handlers()), revision, capabilities) as wire:
        codes = {(await wire("tasks/get", taskId="unknown"))["error"]["code"] for _ in range(BURST)}
        assert codes == {-32602}
        refused = (await wire("tasks/get", taskId="unknown"))["error"]
        assert (refused["code"], refused["data"]) == (-32600, {"retryAfter": 1})
        assert "pollInterval" in refused["message"]
        clock[0] += 1
        assert (await wire("tasks/get", taskId="unknown"))["error"]["code"] == -32602
