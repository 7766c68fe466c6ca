"""Finds the calls that crash a server by replaying calls to fresh servers, since earlier calls can be the cause."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from stubwright.contract_tests import checks
from stubwright.contract_tests.answers import Disconnect, Timeout
from stubwright.contract_tests.cases import Arguments, Case
from stubwright.contract_tests.probes import Call
from stubwright.contract_tests.reports import Fault
from stubwright.contract_tests.session import BudgetError
from stubwright.contract_tests.shrinking import minimize

if TYPE_CHECKING:
    from stubwright.contract_tests.session import Loss, Request, SentCall, Session

MOMENT: Final = 5.0
"""The maximum delay in seconds between the last response and a crash that earlier calls caused."""

_SHORTEST_MOMENT: Final = 1.5
LAST_MOMENT: Final = 3.0
"""The time in seconds to wait for a crash after all calls to a server."""

_MARGIN: Final = 0.5
_GROWTH: Final = 4
_TRIES: Final = 16
"""The maximum number of servers to start to find the calls that cause a crash."""

_SMALLER: Final = 8
"""The maximum number of servers to start to find smaller arguments that cause a crash."""


@dataclass(frozen=True, slots=True)
class _End:
    """A server's exit: the preceding calls or request, the reason, and the seconds since the last response.

    `seconds` is None if a call or request got no response.
    """

    calls: Sequence[SentCall]
    why: str
    seconds: float | None = None
    request: str = ""


class Crashes:
    """Collects a server's crashes during a run, with the calls that caused them.

    Attributes:
        faults: The crashes found so far.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tries = 0
        self.faults: list[Fault] = []

    async def explain(self, words: str = "") -> str | None:
        """Add a fault if the server has exited since the last check.

        Args:
            words: A description of the call in progress.

        Returns:
            The tool that caused the exit, or an empty string if no call reproduces it; None if the server is running.

        Raises:
            UnreachableError: The server does not restart.
        """
        loss = self._session.pop_loss()
        return None if loss is None else await self.explain_loss(loss, words)

    async def explain_late(self) -> None:
        """Wait for a late exit of a server that has responded to all calls, and add a fault if it exits.

        Raises:
            UnreachableError: The server does not restart.
        """
        if self._session.has_calls:
            with suppress(BudgetError):
                await self._session.outlast(LAST_MOMENT)
            await self.explain()

    def has_blamed(self, tool: str) -> bool:
        """Return whether a call to `tool` caused one of the crashes."""
        return any(tool in _get_tools(fault) for fault in self.faults)

    async def explain_loss(self, loss: Loss, words: str = "") -> str:
        """Add a fault for a lost connection. Return the tool that caused the loss, as `explain` does."""
        last = loss.calls[-1] if loss.calls else None
        for number, fault in enumerate(self.faults):
            if last is not None and fault.tool == last.name and not fault.calls:
                self.faults[number] = replace(fault, count=fault.count + 1)
                return fault.tool
        end: _End | None = None
        self._tries = _TRIES
        try:
            with self._session.limit(self._session.count_seconds_left() / 2):
                end = await self._find(loss)
                if end is not None and end.calls:
                    end = await self._reduce(end, loss)
        finally:  # the server might not restart
            fault = _report_unexplained(loss) if end is None else _report(end, last, words)
            self._add(fault)
        return fault.tool

    def _add(self, fault: Fault) -> None:
        for number, known in enumerate(self.faults):
            if _get_tools(known) == _get_tools(fault):
                self.faults[number] = replace(known, count=known.count + 1)
                return
        self.faults.append(fault)

    async def _find(self, loss: Loss) -> _End | None:
        """Reproduce an exit with the last call, a request, or several of the last calls. Return None if the server
        survives.
        """
        try:
            end = await self.replay(loss.calls[-1:], loss.time) if loss.calls else None
            for request in reversed(loss.requests):
                end = end or await self._replay_request(request, loss.time)
            size = 1
            while end is None and size < len(loss.calls):
                size *= _GROWTH
                end = await self.replay(loss.calls[-size:], loss.time)
        except BudgetError:
            return None
        return end

    async def _reduce(self, end: _End, loss: Loss) -> _End:
        """Reproduce an exit with fewer calls or smaller arguments, within the remaining time."""
        parts = 2
        try:
            while len(end.calls) > 1 and self._tries > 0:
                smaller = await self._drop_part(end, parts, loss)
                if smaller is not None:
                    end, parts = smaller, max(parts - 1, 2)
                elif parts >= len(end.calls):
                    break
                else:
                    parts = min(2 * parts, len(end.calls))
            if len(end.calls) == 1:
                end = await self._shrink(end, loss)
        except BudgetError:
            return end
        return end

    async def _drop_part(self, end: _End, parts: int, loss: Loss) -> _End | None:
        """Reproduce an exit with fewer calls (Zeller's ddmin). Return None if every call is necessary."""
        calls, size = end.calls, -(-len(end.calls) // parts)
        rests = [[*calls[:start], *calls[start + size :]] for start in range(0, len(calls), size)]
        for some in rests:
            if self._tries <= 0:
                return None
            smaller = await self.replay(some, loss.time)
            if smaller is not None:
                return smaller
        return None

    async def _shrink(self, end: _End, loss: Loss) -> _End:
        [sent] = end.calls
        try:
            arguments = Arguments(sent.tool.get("inputSchema"))
        except ValueError:
            return end
        case = arguments.classify(sent.arguments, "")
        if case is None:
            return end
        smallest = end

        async def ends(smaller: Case) -> bool:
            nonlocal smallest
            found = await self.replay([replace(sent, arguments=smaller.arguments)], loss.time)
            smallest = found or smallest
            return found is not None

        with suppress(BudgetError):
            await minimize(case, arguments, _SMALLER, ends)
        return smallest

    async def replay(self, calls: Sequence[SentCall], ended: float) -> _End | None:
        """Send calls to a fresh server. Return the exit that the calls cause, or None if the server survives.

        Args:
            calls: The calls to send, in order.
            ended: The time when the first server exited, on the same clock as `SentCall.time`.

        Raises:
            UnreachableError: The server does not restart.
            BudgetError: The server's time budget is used up.
        """
        self._tries -= 1
        session, start = self._session, time.monotonic()
        await session.disconnect()
        for number, sent in enumerate(calls, 1):
            answer = await session.call(sent.tool, sent.arguments)
            if isinstance(answer, Disconnect):
                session.pop_loss()
                return _End(calls[:number], answer.why)
            if isinstance(answer, Timeout):
                return None
        return await self._watch(_End(calls, ""), start, ended - calls[0].time)

    async def _replay_request(self, request: Request, ended: float) -> _End | None:
        session, start = self._session, time.monotonic()
        await session.disconnect()
        answer = await session.ask(request.method, **request.params)
        if isinstance(answer, Disconnect):
            session.pop_loss()
            return _End((), answer.why, request=request.label)
        return await self._watch(_End((), "", request=request.label), start, ended - request.time)

    async def _watch(self, end: _End, start: float, seconds: float) -> _End | None:
        """Return a late exit of a server that has responded.

        Return None if the server survives longer than the first server did.

        Args:
            end: The exit to reproduce.
            start: The `time.monotonic` time when the calls or the request were sent.
            seconds: The time until the first server exited.
        """
        answered = time.monotonic()
        moment = min(max(seconds + _MARGIN, _SHORTEST_MOMENT), MOMENT)
        gone = await self._session.outlast(max(moment - (answered - start), _SHORTEST_MOMENT))
        self._session.pop_loss()
        return None if gone is None else replace(end, why=gone.why, seconds=time.monotonic() - answered)


def describe_late(why: str, seconds: float) -> str:
    """Describe the exit of a server that exited `seconds` after it had responded to all calls."""
    return f"{seconds:.1f} s after the response, the server {why}"


def _report(end: _End, last: SentCall | None, words: str) -> Fault:
    if end.request:
        when = f"after {end.request}" if end.seconds is None else f"{end.seconds:.1f} s after {end.request}"
        return Fault(checks.SURVIVES, f"{when}, the server {end.why}")
    *_, sent = end.calls
    message = f"the server {end.why}" if end.seconds is None else describe_late(end.why, end.seconds)
    calls = [Call(call.name, call.arguments) for call in end.calls]
    if len(calls) > 1:
        message = f"after these calls, {message}"
    is_last = last is not None and sent.arguments == last.arguments and sent.name == last.name
    shown = calls if len(calls) > 1 or end.seconds is not None else []
    return Fault(checks.SURVIVES, message, sent.name, sent.arguments, words if is_last else "", calls=shown)


def _report_unexplained(loss: Loss) -> Fault:
    first, *log = loss.why.split("\n")
    return Fault(checks.SURVIVES, "\n".join([f"the server {first} during the run, and no call reproduced it", *log]))


def _get_tools(fault: Fault) -> Sequence[str]:
    return [fault.tool, *(call.tool for call in fault.calls[:-1])]
