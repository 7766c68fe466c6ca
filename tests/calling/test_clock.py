"""The clock of a call: one deadline for all steps, which pauses while the user answers a question."""

from __future__ import annotations

import math

import anyio
import pytest

from stubwright.calling.clock import Clock
from stubwright.importers.limits import Limits
from stubwright_runtime import Accepted
from stubwright_runtime.client.features.questions import Question

pytestmark = pytest.mark.anyio


async def test_a_deadline_for_everything_stops_while_a_person_is_asked() -> None:
    clock = Clock(Limits(), 30)

    async def answer(_: Question) -> Accepted:
        assert anyio.current_effective_deadline() == math.inf
        return Accepted()

    with clock.enforce():
        clock.start_listing()
        clock.start_calling()
        before = anyio.current_effective_deadline()
        assert isinstance(await clock.exclude(answer)(Question("Sure?")), Accepted)
        assert before <= anyio.current_effective_deadline() < before + 10
    assert clock.describe_overrun() == "did not respond within 30 s; allow more time with --timeout"


async def test_by_default_connecting_and_listing_have_their_own_time_and_the_answer_any() -> None:
    clock = Clock(Limits(seconds=60, starting=600), None)
    with clock.enforce():
        assert anyio.current_effective_deadline() > anyio.current_time() + 500
        clock.start_listing()
        assert anyio.current_effective_deadline() < anyio.current_time() + 100
        clock.start_calling()
        assert anyio.current_effective_deadline() == math.inf


async def test_an_overrun_counts_the_pages_that_were_read() -> None:
    clock = Clock(Limits(), 0.001)
    clock.progress.add(["a", "b"])
    with pytest.raises(TimeoutError), clock.enforce():
        await anyio.sleep_forever()
    overrun = "did not complete its lists within 0.001 s (1 page with 2 entries was read)"
    assert clock.describe_overrun().startswith(overrun)
    clock.start_calling()
    assert clock.describe_overrun().startswith("did not respond within 0.001 s;")
