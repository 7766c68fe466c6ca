"""Checks a server's lists, and its responses to invalid, concurrent, cancelled and repeated requests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio
import mcp_types

from stubwright.contract_tests import checks
from stubwright.contract_tests.answers import (
    Answer,
    Disconnect,
    ProtocolError,
    RateLimitRefusal,
    Result,
    Timeout,
    find_limit,
)
from stubwright.contract_tests.reports import Fault
from stubwright.contract_tests.session import BudgetError
from stubwright.contract_tests.stacks import find_stack
from stubwright.importers.live import UnreachableError
from stubwright_runtime.mcp.vocabulary import IDEMPOTENCY_META_KEY, REPLAY_META_KEY, TOOL_NAME
from stubwright_runtime.policy.once import FOR
from stubwright_runtime.values.units import parse_duration

if TYPE_CHECKING:
    from stubwright.contract_tests.cases import Case
    from stubwright.contract_tests.session import Session
    from stubwright.importers.live import Connection

_NAME: Final = re.compile(TOOL_NAME)
_NO_TOOL: Final = "stubwright-no-such-tool"
_NO_METHOD: Final = "stubwright/no-such-method"
_NO_CURSOR: Final = "stubwright-no-such-cursor"
_AT_ONCE: Final = 8
_ATTEMPTS: Final = 5
"""The number of failed calls after which a tool is skipped."""

_MOMENTS: Final = (0.02, 0.2)
"""Seconds after which a call is cancelled. By then, many servers have started the call, and few have finished it."""


def check_list(tools: Sequence[Mapping[str, Any]], connection: Connection) -> Iterator[Fault]:
    """Yield the faults in tool names and in the server's declared capabilities."""
    if tools and "tools" not in connection.capabilities:
        yield Fault(checks.DECLARED, "the server lists tools but does not declare the capability `tools`")
    for name, count in Counter(str(tool.get("name")) for tool in tools).items():
        if count > 1:
            yield Fault(checks.NAMES, f"{count} tools have this name", name)
        if _NAME.fullmatch(name) is None:
            yield Fault(checks.NAMES, "the name has invalid characters, or more than 128 characters", name)


async def check_requests(session: Session, tools: Sequence[Mapping[str, Any]]) -> AsyncIterator[Fault]:
    """Yield the faults in responses to invalid and repeated requests."""
    what = "a call to an unknown tool"
    answer = await session.request(what, "tools/call", {"name": _NO_TOOL, "arguments": {}})
    for fault in _check_unknown_tool(answer):
        yield fault
    what = "`tools/list` with an unknown cursor"
    answer = await session.request(what, "tools/list", {"cursor": _NO_CURSOR})
    if isinstance(answer, Disconnect) and answer.has_ended:
        yield Fault(checks.SURVIVES, _describe(what, answer))
    elif find_limit(answer) is not None:
        pass
    elif not isinstance(answer, ProtocolError):
        yield Fault(checks.UNKNOWN_CURSOR, _describe(what, answer))
    elif answer.code != mcp_types.INVALID_PARAMS:
        yield Fault(checks.UNKNOWN_CURSOR, f"an unknown cursor caused the error {answer.code}")
    what = f"the method `{_NO_METHOD}`"
    answer = await session.request(what, _NO_METHOD, {})
    if isinstance(answer, Disconnect) and answer.has_ended:
        yield Fault(checks.SURVIVES, _describe(what, answer))
    elif isinstance(answer, Result | Timeout):
        yield Fault(checks.UNKNOWN_METHOD, _describe(what, answer))
    what = "the second `tools/list`"
    answer = await session.ask("tools/list")
    if isinstance(answer, Result) and not _begins(tools, answer):
        yield Fault(checks.SAME_ORDER, f"{what} returned different tools, or a different order")
    elif isinstance(answer, Timeout):
        yield Fault(checks.IN_TIME, _describe(what, answer))
    elif isinstance(answer, Disconnect) and answer.has_ended:
        yield Fault(checks.SURVIVES, _describe(what, answer))


def _begins(tools: Sequence[Mapping[str, Any]], page: Result) -> bool:
    """Return whether a tool list starts with the tools on a page. The last page must contain the whole list."""
    listed = page.value.get("tools")
    names = [tool.get("name") for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
    known = [tool.get("name") for tool in tools]
    return names == (known[: len(names)] if page.value.get("nextCursor") else known)


async def check_concurrent(session: Session, tool: Mapping[str, Any], case: Case) -> Fault | None:
    """Make concurrent calls and return a fault if a response differs in kind from the response to a single call.

    Args:
        session: The session with the server under test.
        tool: A tool.
        case: Arguments that the tool has answered.
    """
    await session.connect()
    alone = await session.call(tool, case.arguments)
    if not isinstance(alone, Result | ProtocolError):
        return None
    answers: list[Answer] = []
    failures: list[Exception] = []
    deadline, turns = session.deadline, 2 * _AT_ONCE * alone.seconds
    session.deadline = max(deadline, turns)  # a server can handle calls sequentially

    async def call() -> None:
        try:
            answers.append(await session.call(tool, case.arguments))
        except (BudgetError, UnreachableError) as error:  # the task group would wrap it in an exception group
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        for _ in range(_AT_ONCE):
            tasks.start_soon(call)
    session.deadline = deadline
    if failures:
        raise failures[0]
    odd = [answer for answer in answers if type(answer) is not type(alone)]
    if not odd or any(find_limit(answer) for answer in answers):
        return None
    words = f"of {_AT_ONCE} concurrent calls, {len(odd)} got a different kind of response from a single call"
    return Fault(checks.CONCURRENT, f"{words}: {_describe('a call', odd[0])}", str(tool["name"]), case.arguments)


async def check_cancelled(session: Session, tool: Mapping[str, Any], case: Case) -> Fault | None:
    """Cancel a call and return a fault if the server does not respond to the next request.

    Args:
        session: The session with the server under test.
        tool: A tool.
        case: Arguments that the tool has answered.
    """
    await session.connect()
    alone = await session.call(tool, case.arguments)
    if not isinstance(alone, Result | ProtocolError) or alone.seconds > session.deadline / 2:
        return None  # a server that handles requests sequentially would seem to hang
    for seconds in _MOMENTS:
        with anyio.move_on_after(seconds):  # the timeout cancels the request
            await session.call(tool, case.arguments)
        answer = await session.ask("tools/list")
        if isinstance(answer, Timeout | Disconnect):
            break
    else:
        return None
    words = _describe("`tools/list`, sent after a call was cancelled,", answer)
    return Fault(checks.CANCELLED, words, str(tool["name"]), case.arguments)


async def check_once(
    session: Session, tool: Mapping[str, Any], once: Mapping[str, Any], cases: Iterable[Case]
) -> Fault | None:
    """Call a tool twice with the same `once` key. Return a fault if the second response is not the first one, replayed.

    Args:
        session: The session with the server under test.
        tool: The tool.
        once: The tool's `policy.once` in the manifest.
        cases: Arguments to try. The first successful call is repeated.
    """
    key = once["key"]
    keyed = [case for case in cases if case.is_valid and (isinstance(key, str) or {*key} & {*case.arguments})]
    for case in keyed[:_ATTEMPTS]:
        meta = {IDEMPOTENCY_META_KEY: str(uuid4())}
        first = await session.call(tool, case.arguments, meta)
        if not isinstance(first, Result) or first.is_error or first.is_question:
            continue
        if first.seconds >= parse_duration(once.get("for", FOR)):
            return None  # the first result is no longer stored
        second = await session.call(tool, case.arguments, meta)
        words = "" if find_limit(second) is not None else _compare(first, second)
        return Fault(checks.ONCE, words, str(tool["name"]), case.arguments) if words else None
    return None


def _compare(first: Result, second: Answer) -> str:
    if not isinstance(second, Result):
        return "the repeated call returned no result"
    if any(first.value.get(name) != second.value.get(name) for name in ("content", "structuredContent", "isError")):
        return "the repeated call returned a new result"
    meta = second.value.get("_meta")
    is_marked = isinstance(meta, dict) and meta.get(REPLAY_META_KEY) is True
    return "" if is_marked else f"the result of the repeated call has no `{REPLAY_META_KEY}` in its `_meta`"


def _check_unknown_tool(answer: Answer) -> Iterator[Fault]:
    what = f"a call to the unknown tool `{_NO_TOOL}`"
    if find_limit(answer) is not None:
        return
    match answer:
        case ProtocolError():
            if answer.code != mcp_types.INVALID_PARAMS:
                yield Fault(checks.UNKNOWN_TOOL_ERROR, f"{what} caused the error {answer.code}")
            texts: Any = [answer.message, answer.data]
        case Result() if answer.is_error:
            yield Fault(checks.UNKNOWN_TOOL_ERROR, f"{what} returned a result with `isError`")
            texts = answer.value.get("content")
        case _:
            yield Fault(checks.UNKNOWN_TOOL, _describe(what, answer))
            return
    if language := find_stack(texts):
        yield Fault(checks.NO_STACK, f"{what} returned a {language} stack trace")


def _describe(what: str, answer: Answer) -> str:
    match answer:
        case Result():
            return f"{what} returned a result"
        case ProtocolError():
            return f"{what} caused the error {answer.code}"
        case Timeout():
            return f"{what} got no response within {answer.seconds:g} s"
        case Disconnect():
            return f"{what} got no response: the server {answer.why}"
        case RateLimitRefusal():
            return f"{what} hit a rate limit"
