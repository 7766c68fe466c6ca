"""Makes calls idempotent (`once` in a tool's policy): runs the first call with a key and replays its result to later
calls.

A call claims its key in the store before it runs and stores its result afterwards. If the lease of a claim without a
result expires, the call was interrupted. Later calls with the key are rejected, because the interrupted call may have
taken effect.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import secrets
import time
from collections import OrderedDict
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio

from ..errors import NoEffectError, UnknownEffectError
from ..mcp.vocabulary import CURSOR, IDEMPOTENCY_KEY, IDEMPOTENCY_META_KEY, REPLAY_META_KEY
from ..observability.logs import log
from ..server.core.outcomes import Outcome, OutcomeStatus, refuse
from ..server.features.input_requests import MissingCapability, find_inner, is_control_flow, is_suspended
from ..server.features.url_elicitation import UrlRequired
from ..state.budget import BudgetExceeded
from ..state.leases import LeaseRenewer
from ..state.store import StateLost, describe_lost_state
from ..values.json import is_list, is_mapping
from ..values.units import describe_wait, parse_duration

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence

    from ..package import Tool
    from ..server.core.request import Handle, Request
    from ..state.store import Store

FOR: Final = "24h"
"""The default of `for`, the lifetime of a stored result."""

LEASE: Final = 30.0
"""Seconds without a renewal after which a lease expires, because its process has presumably died."""

_KIND: Final = "once"
_PATIENCE: Final = 60.0
"""The maximum time in seconds that a call without a timeout waits for the first call with its key."""

_MARGIN: Final = 0.1
"""Seconds before its timeout at which a waiting call receives a response."""

_PAUSES: Final = (0.05, 0.1, 0.2, 0.5)
"""Seconds between polls for the result of a call in another process; the last value repeats."""

_EARLIER: Final = 0.99
"""The fraction of a result's lifetime for which a process remembers the key; less than 1, so that the store never
forgets a key first.
"""

_KEPT: Final = ("completed", "tool_error")
"""The statuses whose results are replayed. After any other status, it is unknown whether the call took effect."""

_REMEMBERED: Final = 10_000
"""The number of keys that a process remembers to detect that the store has lost their records."""

_KEY: Final = 255
"""The maximum length of a key from a client, in characters."""

_SHOWN: Final = 100
"""The maximum length of an argument in a message, in characters."""

_ARGUMENTS: Final = 50
"""The maximum number of arguments that are stored to show them in messages."""

_Refuse: TypeAlias = "Callable[[Tool, Request, BaseException], Outcome]"
_State: TypeAlias = Literal["running", "done", "unknown"]


@dataclass(frozen=True, slots=True)
class _OncePolicy:
    key: Sequence[str] | str
    seconds: float
    runs_unknown: bool

    @classmethod
    def from_tool(cls, tool: Tool) -> _OncePolicy | None:
        once: Mapping[str, Any] | None = tool.policy.get("once")
        if not once:
            return None
        key = once["key"]
        if is_list(key) and (tool.is_paginated or "page" in (tool.extension.get("http") or {})):
            key = [*key, CURSOR]  # each page is a separate call
        return cls(key, parse_duration(once.get("for", FOR)), once.get("onUnknown") == "run")

    def find_key(self, request: Request, arguments: Mapping[str, Any]) -> Any:
        """Return the key of a call as JSON, or `None` without a key. Raises ValueError if the client's key is invalid.

        `arguments` are the call's arguments, with defaults.
        """
        if self.key == "all":
            return arguments
        if is_list(self.key):
            is_sent = any(name in request.arguments for name in self.key)
            # Most handlers treat null like an absent argument, so both result in the same key.
            given = {name: arguments[name] for name in self.key if arguments.get(name) is not None}
            return given if is_sent else None
        meta = request.params.get("_meta")
        place, key = f"`{IDEMPOTENCY_KEY}`", request.params.get(IDEMPOTENCY_KEY)
        if key is None and is_mapping(meta):
            place, key = f"`{IDEMPOTENCY_META_KEY}` in `_meta`", meta.get(IDEMPOTENCY_META_KEY)
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= _KEY):
            raise ValueError(f"{place} must be a string of 1 to {_KEY} characters")
        return key


@dataclass(frozen=True, slots=True)
class _Record:
    """A call's record in the store.

    Attributes:
        state: The call's state.
        digest: The digest of the call's arguments.
        shown: The arguments to show in messages, shortened and redacted.
        holder: The holder of the call's lease.
        result: The result; `None` while the call is running, or if the result was too large to store.
        status: The outcome's status.
        reason: The outcome's reason code, if the call did not complete.
    """

    state: _State
    digest: str
    shown: Mapping[str, str]
    holder: str
    result: dict[str, Any] | None = None
    status: OutcomeStatus = "completed"
    reason: str | None = None

    def dump(self) -> bytes:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    @classmethod
    def load(cls, data: bytes) -> _Record | None:
        """Parse a record, or return `None` if the record could not be decrypted."""
        return cls(**json.loads(data.decode("utf-8", "surrogatepass"))) if data else None


@dataclass(slots=True, eq=False)
class _Call:
    """One call in this process.

    Attributes:
        name: The key of the call's record in the store.
        owner: The caller.
        words: A description of the idempotency key for messages.
        record: The record to store while the call is running.
        ended: Set when the call has finished in this process.
        outcome: The outcome, if it can be replayed.
        expires: The monotonic time after which another process can claim the key.
    """

    name: str
    owner: str
    words: str
    record: _Record
    ended: anyio.Event
    outcome: Outcome | None = None
    expires: float = math.inf

    def has_expired(self) -> bool:
        """Return whether the claim has expired, so that another call may have claimed the key."""
        return time.monotonic() >= self.expires


class IdempotentCalls:
    """Runs one server's idempotent calls."""

    def __init__(self, store: Store, refuse_error: _Refuse) -> None:
        """Store calls' results in `store`; `refuse_error` converts a handler's exception to an outcome."""
        self._store = store
        self._refuse_error = refuse_error
        self._renewer = LeaseRenewer(store)
        self._running: dict[str, _Call] = {}
        self._begun: OrderedDict[str, float] = OrderedDict()
        self._void: OrderedDict[str, str] = OrderedDict()

    def wrap(self, tool: Tool, call_next: Handle) -> Handle:
        """Wrap a tool's handler to run at most once per key."""
        policy = _OncePolicy.from_tool(tool)
        if policy is None:
            return call_next
        terms, schema = policy, tool.accepts

        async def call(request: Request) -> Outcome:
            arguments = _fill_defaults(request.arguments, schema)
            try:
                key = terms.find_key(request, arguments)
            except ValueError as error:
                return refuse(f"{tool.name} was not run: {error}.", "invalid", "idempotency_key")
            if key is None or request.task_id is not None:
                return await call_next(request)
            own = _make_call(tool, terms, request, key, arguments)
            return await self._call(tool, terms, request, own, call_next)

        return call

    async def _call(self, tool: Tool, terms: _OncePolicy, request: Request, own: _Call, call_next: Handle) -> Outcome:
        """Run a call. If another call with the same key is running, wait for its outcome instead."""
        began = anyio.current_time()
        end = min(anyio.current_effective_deadline() - _MARGIN, began + _PATIENCE)
        looks = 0
        while True:
            if (other := self._running.get(own.name)) is None:
                self._running[own.name] = own
                try:
                    outcome = await self._claim(tool, terms, request, own, call_next)
                finally:
                    del self._running[own.name]
                    own.ended.set()
                if outcome is not None:
                    return outcome
                own.ended = anyio.Event()
                pause = min(_PAUSES[min(looks, len(_PAUSES) - 1)], end - anyio.current_time())
                looks += 1
                await anyio.sleep(max(0.0, pause))
            elif other.record.digest != own.record.digest:
                return _refuse_conflict(tool, own, other.record)
            else:
                with anyio.CancelScope(deadline=end):
                    await other.ended.wait()
                if other.outcome is not None:
                    return _replay(request, other.outcome)
            if anyio.current_time() >= end:
                return _refuse_running(tool, own, anyio.current_time() - began)

    async def _claim(
        self, tool: Tool, terms: _OncePolicy, request: Request, call: _Call, run: Handle
    ) -> Outcome | None:
        """Claim a call's key, run the call and return its outcome.

        Return `None` if another process is running a call with the same key.
        """
        data, holder = call.record.dump(), call.record.holder
        call.expires = time.monotonic() + terms.seconds
        try:
            claimed = await self._store.claim(
                _KIND, call.name, data, owner=call.owner, ttl=terms.seconds, holder=holder, lease=LEASE
            )
        except StateLost as error:
            if error.is_unknown:  # the claim may exist although the call has not run
                _remember(self._void, call.name, holder)
            return refuse(describe_lost_state(is_unknown=False), "limited", "state_lost")
        if claimed is None:
            if time.monotonic() >= self._begun.get(call.name, -math.inf):
                return await self._run(tool, terms, request, call, run, 0)
            log().warning("the store lost the record of a call to %s", tool.name)
            version, kept = 0, None
        else:
            kept, version = _Record.load(claimed.record.data), claimed.record.version
            if kept is not None:
                if kept.digest != call.record.digest:
                    return _refuse_conflict(tool, call, kept)
                if kept.state == "done":
                    call.outcome = _restore(tool, call, kept)
                    return _replay(request, call.outcome)
                is_void = kept.state == "running" and self._void.get(call.name) == kept.holder
                if kept.state == "running" and claimed.is_held and not is_void:
                    return None
                if is_void:
                    return await self._resume_interrupted(tool, terms, request, call, run, version, kept)
        if terms.runs_unknown:
            return await self._resume_interrupted(tool, terms, request, call, run, version, kept)
        if claimed is None:
            await self._save(tool, call, version, replace(call.record, state="unknown"))
        return _refuse_unknown(tool, call)

    async def _resume_interrupted(
        self,
        tool: Tool,
        terms: _OncePolicy,
        request: Request,
        call: _Call,
        run: Handle,
        version: int,
        kept: _Record | None,
    ) -> Outcome | None:
        """Run a call again after an interruption, or return `None` if another process has resumed it."""
        lease = f"{_KIND}:{call.name}"
        if kept is not None:
            await self._store.release(lease, kept.holder)
        if not await self._store.hold(lease, call.record.holder, LEASE):
            return None
        if not await self._store.replace(_KIND, call.name, call.record.dump(), version=version):
            await self._store.release(lease, call.record.holder)
            return None
        return await self._run(tool, terms, request, call, run, version + 1)

    async def _run(
        self, tool: Tool, terms: _OncePolicy, request: Request, call: _Call, call_next: Handle, version: int
    ) -> Outcome:
        """Run a call whose key has been claimed, and store the result."""
        self._void.pop(call.name, None)
        if self._store.is_shared:
            _remember(self._begun, call.name, time.monotonic() + _EARLIER * terms.seconds)
        request.outlives_client = True
        request.once_key = call.name
        is_known = True
        try:
            async with self._keep_lease(call):
                outcome = await call_next(request)
        except BaseException as error:
            asks = _is_question(error)
            if asks or is_control_flow(error):
                await _await_shielded(self._settle(tool, request, call, version, None, asks=asks))
                raise
            outcome = self._refuse_error(tool, request, error)
            is_known = not isinstance(error, UnknownEffectError)
            request.has_begun = request.has_begun and not isinstance(error, NoEffectError)
        await _await_shielded(self._settle(tool, request, call, version, outcome if is_known else None))
        return outcome

    async def _settle(
        self, tool: Tool, request: Request, call: _Call, version: int, outcome: Outcome | None, *, asks: bool = False
    ) -> None:
        """Store a call's outcome. Release the key instead if the handler did not start or asked a question."""
        if asks or not request.has_begun or (request.rounds is not None and request.rounds.pending):
            await self._release(tool, call)
        elif outcome is None or outcome.status not in _KEPT:
            await self._save(tool, call, version, replace(call.record, state="unknown"))
        else:
            call.outcome = outcome
            fields: dict[str, Any] = {"result": outcome.result, "status": outcome.status, "reason": outcome.reason}
            await self._save(tool, call, version, replace(call.record, state="done", **fields))

    async def _save(self, tool: Tool, call: _Call, version: int, record: _Record) -> None:
        """Store the record of a finished call.

        If the record cannot be stored, only later calls with the same key are affected: they get "unknown".
        """
        if call.has_expired():
            return
        try:
            try:
                is_stored = await self._store.replace(_KIND, call.name, record.dump(), version=version)
            except BudgetExceeded:
                small = replace(record, result=None).dump()
                is_stored = await self._store.replace(_KIND, call.name, small, version=version, final=True)
        except StateLost as error:
            log().warning("could not store the result of a call to %s: %s", tool.name, error)
            return
        if not is_stored:
            log().warning("did not store the result of a call to %s: its claim expired or was replaced", tool.name)

    async def _release(self, tool: Tool, call: _Call) -> None:
        self._begun.pop(call.name, None)
        if call.has_expired():
            return
        try:
            await self._store.delete(_KIND, call.name)
        except StateLost as error:
            _remember(self._void, call.name, call.record.holder)
            log().warning("could not release the key of a call to %s: %s", tool.name, error)

    @asynccontextmanager
    async def _keep_lease(self, call: _Call) -> AsyncGenerator[None, None]:
        """Renew the lease of a call during the block, if other processes share the store."""
        if not self._store.is_shared:
            yield
            return

        lease, holder = f"{_KIND}:{call.name}", call.record.holder

        async def renew() -> None:
            while True:
                await asyncio.sleep(LEASE / 3)
                with suppress(StateLost):  # the store logs the error, and the next renewal can still be in time
                    await self._store.hold(lease, holder, LEASE)

        renewing = asyncio.create_task(renew())
        try:
            with self._renewer.keep(lease, holder, LEASE):  # in a thread, because the handler can block the event loop
                yield
        finally:
            renewing.cancel()


async def _await_shielded(storing: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine until it finishes, even if this task or an enclosing scope is cancelled."""
    task = asyncio.ensure_future(storing)
    with anyio.CancelScope(shield=True):
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise


def _is_question(error: BaseException) -> bool:
    """Return whether an exception asks the client a question. After the client's answer, the handler runs again."""
    return is_suspended(error) or any(find_inner(error, kind) is not None for kind in (MissingCapability, UrlRequired))


def _make_call(tool: Tool, terms: _OncePolicy, request: Request, key: Any, arguments: Mapping[str, Any]) -> _Call:
    principal = request.principal.key
    redacted = tool.redact({name: value for name, value in arguments.items() if name not in tool.bound})
    shown = {name: _show(value) for name, value in [*redacted.items()][:_ARGUMENTS]}
    if terms.key == "all":
        words = "these arguments"
    elif is_list(terms.key):
        words = ", ".join(f"{name} {shown.get(name, '…')}" for name in key or terms.key if name in redacted)
        words = words or "the same key"  # all of its arguments are bound
    else:
        words = f"the idempotency key {_show(key)}"
    record = _Record("running", _digest(arguments), shown, secrets.token_hex(8))
    return _Call(_digest([tool.name, principal, key]), principal, words, record, anyio.Event())


def _fill_defaults(value: Any, schema: Any) -> Any:
    """Return a value with defaults for absent properties, as the handler's model would set them."""
    properties = schema.get("properties") if is_mapping(schema) else None
    if not is_mapping(properties) or not is_mapping(value):
        return value
    defaults = {name: each["default"] for name, each in properties.items() if is_mapping(each) and "default" in each}
    return {**defaults, **{name: _fill_defaults(each, properties.get(name)) for name, each in value.items()}}


def _digest(value: Any) -> str:
    text = json.dumps(_normalize(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _normalize(value: Any) -> Any:
    """Return JSON with integral floats as integers: `1.0` equals `1` (JSON Schema 2020-12, 4.2.2)."""
    if is_mapping(value):
        return {name: _normalize(each) for name, each in value.items()}
    if is_list(value):
        return [_normalize(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _remember(memory: OrderedDict[str, Any], name: str, value: Any) -> None:
    memory[name] = value
    memory.move_to_end(name)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)


def _replay(request: Request, outcome: Outcome) -> Outcome:
    if request.record is not None:
        request.record.is_replay = True
    meta = {**(outcome.result.get("_meta") or {}), REPLAY_META_KEY: True}
    return replace(outcome, result={**outcome.result, "_meta": meta})


def _restore(tool: Tool, call: _Call, kept: _Record) -> Outcome:
    if kept.result is not None:
        return Outcome(kept.result, kept.status, kept.reason)
    return refuse(
        f"{tool.name} was carried out with {call.words}, and is not run again; its result was too large to store.",
        "limited",
        "once_result",
    )


def _refuse_conflict(tool: Tool, call: _Call, first: _Record) -> Outcome:
    now, before = call.record.shown, first.shown
    names = [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]
    lines = "".join(f"\n- {name}: was {before.get(name, 'absent')}, is {now.get(name, 'absent')}" for name in names)
    return refuse(
        f"{tool.name} was called with {call.words} before, but with other arguments"
        f"{f':{lines}' if lines else '; the differences cannot be shown.'}\n"
        "It was not run again. Repeat the first arguments to get the first result; a new call needs a new key.",
        "invalid",
        "once_conflict",
    )


def _refuse_running(tool: Tool, call: _Call, seconds: float) -> Outcome:
    return refuse(
        f"{tool.name} with {call.words} is still running after {describe_wait(seconds)}. It was not started "
        "again; call it again with the same arguments to get its result.",
        "limited",
        "once_running",
    )


def _refuse_unknown(tool: Tool, call: _Call) -> Outcome:
    return refuse(
        f"It is unknown whether {tool.name} took effect with {call.words}: an earlier call started, and its result was "
        "lost. It was not run again; check its effects before you do anything else.",
        "limited",
        "once_unknown",
    )
