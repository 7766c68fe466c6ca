"""Limits calls' concurrency, time and result size. The limits apply before arguments are validated."""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from ..server.core.outcomes import Outcome, refuse
from ..values import units

if TYPE_CHECKING:
    from ..package import Tool
    from ..server.core.request import Handle, Request


class Limits:
    """The limits on the tools of one server."""

    def __init__(self) -> None:
        self._bounds: dict[str, _Bounds] = {}

    def wrap(self, tool: Tool, call_next: Handle) -> Handle:
        """Wrap a tool's handler to limit its calls and tasks."""
        # A tool's calls and tasks use the same slots.
        bounds = self._bounds.get(tool.name) or self._bounds.setdefault(tool.name, _Bounds.from_tool(tool))
        call = call_next if bounds.result is None else _limit_size(tool, bounds.result, call_next)
        if bounds.timeout is None and bounds.slots is None:
            return call
        return _limit_time(tool, bounds, call, call_next)


def _limit_size(tool: Tool, most: int, call_next: Handle) -> Handle:
    async def call(request: Request) -> Outcome:
        outcome = await call_next(request)
        if request.begin is not None or outcome.status not in ("completed", "tool_error"):
            return outcome
        size = len(json.dumps(outcome.result, ensure_ascii=False).encode())
        if size <= most:
            return outcome
        return refuse(
            f"The result of {tool.name} is too large: {size:,} bytes; the limit is {most:,}. "
            "The call was carried out; request less at a time.",
            "limited",
            "result_size",
        )

    return call


def _limit_time(tool: Tool, bounds: _Bounds, call_next: Handle, begin: Handle) -> Handle:
    """Limit the time and concurrency of calls. `begin`, which only starts a task, is not limited."""
    slots, timeout = bounds.slots, bounds.timeout

    async def call(request: Request) -> Outcome:
        if request.begin is not None:  # the limits apply when the task runs
            return await begin(request)
        if slots is not None and (request.is_answer or request.task_id is not None):
            await slots.acquire()  # already admitted: a later round of a call, or a task
        elif slots is not None and not slots.try_acquire():
            most = slots.most
            number = "one call" if most == 1 else f"{most:,} calls"
            text = f"{tool.name} runs {number} at a time; try again when one has finished."
            return refuse(text, "limited", "concurrency")
        with anyio.CancelScope(deadline=math.inf if timeout is None else anyio.current_time() + timeout) as scope:
            slot = request.limits = _CallSlot(scope, slots)
            try:
                outcome = await call_next(request)
                if not scope.cancel_called or outcome.status != "failed":  # a failure is the result of the cancellation
                    return outcome
            finally:
                slot.leave()
        return refuse(
            f"{tool.name} took longer than {tool.policy['timeout']} and was stopped. "
            "Its effects until then may persist; try again with less work, or later.",
            "limited",
            "timeout",
        )

    return call


@dataclass(frozen=True, slots=True)
class _Bounds:
    slots: _Slots | None
    timeout: float | None
    result: int | None

    @classmethod
    def from_tool(cls, tool: Tool) -> _Bounds:
        policy: Mapping[str, Any] = tool.policy
        most, timeout = policy.get("concurrency"), policy.get("timeout")
        result = policy.get("maxResultBytes")
        is_cut = "large" in (tool.extension.get("http") or {})  # large results become resources
        return cls(
            slots=None if most is None else _Slots(most),
            timeout=None if timeout is None else units.parse_duration(timeout),
            result=None if result is None or is_cut else units.parse_size(result),
        )


class _Slots:
    def __init__(self, most: int) -> None:
        self.most = most
        self._taken = 0
        self._waiting: deque[anyio.Event] = deque()

    def try_acquire(self) -> bool:
        if self._taken >= self.most:
            return False
        self._taken += 1
        return True

    async def acquire(self) -> None:
        """Acquire a slot, waiting if none is free. Waiting calls acquire slots before new calls."""
        if self.try_acquire():
            return
        woken = anyio.Event()
        self._waiting.append(woken)
        try:
            await woken.wait()
        except BaseException:
            if woken.is_set():
                self.release()  # the slot was acquired before the cancellation
            else:
                self._waiting.remove(woken)
            raise

    def release(self) -> None:
        if self._waiting:
            # The count does not change, so that no new call can acquire the slot first.
            self._waiting.popleft().set()
        else:
            self._taken -= 1


class _CallSlot:
    """The timer and slot of one call. The slot is released when the call and its threads have finished."""

    def __init__(self, scope: anyio.CancelScope, slots: _Slots | None) -> None:
        self._scope = scope
        self._slots = slots
        self._has_place = slots is not None
        self._holders = 1
        self._suspensions = 0

    @asynccontextmanager
    async def suspend(self) -> AsyncGenerator[None, None]:
        """Stop the timer and release the slot while the block waits for the user. Blocks can overlap."""
        self._suspensions += 1
        if self._suspensions == 1:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = math.inf
            self._free()
        try:
            yield
        finally:
            self._suspensions -= 1
            if not self._suspensions:
                await self._return()

    async def _return(self) -> None:
        if self._slots is not None and not self._has_place:
            await self._slots.acquire()
            self._has_place = True
        self._scope.deadline = anyio.current_time() + self._left

    def hold(self) -> Callable[[], None]:
        """Keep the slot occupied until the returned function is called, from any thread."""
        self._holders += 1
        loop = asyncio.get_running_loop()

        def release() -> None:
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(self.leave)

        return release

    def leave(self) -> None:
        """Release the slot if the call and all its threads have finished. Each of them calls this method once."""
        self._holders -= 1
        if not self._holders:
            self._free()

    def _free(self) -> None:
        if self._slots is not None and self._has_place:
            self._has_place = False
            self._slots.release()
