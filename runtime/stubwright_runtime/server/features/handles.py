"""State handles: state that a server keeps between calls, found by ids that only the server makes.

A handle is unknown to every caller but its owner.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from ...errors import ToolError
from ...models.base import Model, Root
from ...observability import redaction
from ...observability.logs import log
from ...schema import handle_ids
from ...schema.validation import Validator, compile_package_validator
from ...values.text import split_pointer
from ...values.units import parse_duration
from ..core.outcomes import Outcome, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ...package import Tool
    from ..core.feature import ServerContext
    from ..core.principal import Principal
    from ..core.request import Handle as CallHandler
    from ..core.request import Request
    from .context import Context

_State = TypeVar("_State")
_Id = TypeVar("_Id", bound=str)
NameT = TypeVar("NameT")
HandleT = TypeVar("HandleT")


_BYTES: Final = 24
"""Bytes of randomness in an id: 192 bits; MCP requires 128 (2026-07-28, server/tools, on state handles)."""

_MOST: Final = 100
"""The default maximum of handles of one kind for one principal."""

_MOST_AT_ONCE: Final = 1_000
"""Different ids in the arguments or the result of one call."""


class UnknownHandle(ToolError):
    """There is no such handle for the caller: it is unknown, has expired, was ended, or belongs to another caller."""


class StaleHandle(ToolError):
    """Another call changed the state after it was read, so that writing it would lose that change."""


class TooManyHandles(ToolError):
    """The caller has as many handles of this kind as one may have."""


class InvalidState(ValueError):
    """The state that a handler wants to keep does not fit the manifest's schema of it."""


@dataclass(frozen=True, slots=True)
class Handle(Generic[_State, _Id]):
    """The content of one handle when it was read.

    Attributes:
        id: The id that finds it, for the principal who made it only.
        state: The state.
        created: The time at which it was made, in UTC.
        expires: The time at which it ends in any case; `None` if only idleness ends it.
        version: The number of times that the state was replaced.
    """

    id: _Id = field(repr=False)
    state: _State
    created: datetime
    expires: datetime | None
    version: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of handle. `makers` are the tools whose results have such a handle."""

    name: str
    stored: str
    ttl: float | None
    idle: float | None
    most: int
    makers: Sequence[str]

    @property
    def noun(self) -> str:
        return self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Bound:
    """The handles of one call.

    Attributes:
        keeper: All handles of the server.
        principal: Their owner.
        hide: Keeps an id out of the log.
        given: The handles in the arguments, with their kinds, by their JSON pointers.
        known: The kinds and ids of handles that are known to exist.
    """

    registry: HandleRegistry
    principal: Principal
    hide: Callable[[str], None]
    given: dict[str, tuple[str, Handle[Any, Any]]] = field(default_factory=dict[str, tuple[str, "Handle[Any, Any]"]])
    known: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


class Handles(Generic[_State, _Id]):
    """All handles of one kind that the caller has."""

    def __init__(self, bound: Bound, name: str, model: Any) -> None:
        """Take the owner, the kind, and the class of its states, if there is one."""
        self._bound = bound
        self._kind = bound.registry.kinds[name]
        self._model = model

    async def create(self, state: _State) -> _Id:
        """Keep a state, and give the id of its new handle.

        Raises:
            TooManyHandles: The caller has reached the limit (`most`).
            BudgetExceeded: There is no room for it (the manifest's `storage`).
            InvalidState: The state does not fit its schema in the manifest.
            StateLost: The store cannot be reached.
        """
        new_id: Any = secrets.token_urlsafe(_BYTES)
        self._bound.hide(new_id)
        kind, owner, store = self._kind, self._bound.principal.key, self._bound.registry.store
        data = self._encode(datetime.now(UTC), self._check(state))
        if not await store.create(
            kind.stored,
            _key(owner, new_id),
            data,
            owner=owner,
            ttl=kind.ttl,
            idle=kind.idle,
            most=kind.most,
            tracked=True,
        ):
            count = f"{kind.most:,} handles of the kind {kind.noun!r}" if kind.most != 1 else f"one {kind.noun}"
            raise TooManyHandles(
                f"You already have {count}, which is the limit. Use one, end one, or wait until one expires."
            )
        self._bound.known.add((kind.name, new_id))
        typed_id: _Id = new_id
        return typed_id

    async def get(self, handle_id: _Id) -> Handle[_State, _Id]:
        """Return a handle of the caller's. Reading it is use, as `idle` counts it.

        Raises:
            UnknownHandle: The caller does not have a handle with this id.
            StateLost: The store cannot be reached.
        """
        self._bound.hide(handle_id)
        handle = await self._bound.registry.find(self._kind, handle_id, self._bound)
        if handle is None:
            raise self._unknown()
        return replace(handle, state=self._to_model(handle.state))

    async def update(self, handle: Handle[_State, _Id], state: _State) -> Handle[_State, _Id]:
        """Replace the state that was read.

        Args:
            handle: The handle that was read. One of several simultaneous writes wins.
            state: The new state.

        Raises:
            StaleHandle: It was changed since it was read; read it again, and write what follows from that.
            UnknownHandle: The caller has it no longer.
            BudgetExceeded: There is no room for it (the manifest's `storage`).
            InvalidState: The state does not fit its schema in the manifest.
            StateLost: The store cannot be reached.
        """
        kind, registry, bound = self._kind, self._bound.registry, self._bound
        checked = self._check(state)
        data = self._encode(handle.created, checked)
        owner = bound.principal.key
        key = _key(owner, handle.id)
        if not await registry.store.replace(kind.stored, key, data, version=handle.version, payer=owner):
            if await registry.find(kind, handle.id, bound) is None:
                raise self._unknown()
            raise StaleHandle(
                f"Another call changed this {kind.noun} in the meantime, so nothing was saved. Try again."
            )
        return replace(handle, state=self._to_model(checked), version=handle.version + 1)

    async def delete(self, handle_id: _Id) -> bool:
        """End a handle of the caller's; return whether there was one.

        Raises:
            StateLost: The store cannot be reached.
        """
        kind, bound = self._kind, self._bound
        bound.known.discard((kind.name, handle_id))
        owner = bound.principal.key
        return await bound.registry.store.delete(kind.stored, _key(owner, handle_id), payer=owner)

    def _unknown(self) -> UnknownHandle:
        explanation = self._bound.registry.describe_unknown(self._kind.name, self._bound.principal)
        return UnknownHandle(f"This {self._kind.noun} {explanation}.")

    def _encode(self, created: datetime, state: Any) -> bytes:
        """Return the record of a handle for the store."""
        record = {"owner": self._bound.principal.key, "created": created.timestamp(), "state": state}
        return json.dumps(record, ensure_ascii=False).encode()

    def _check(self, state: object) -> Any:
        """Return a state as JSON. Raises InvalidState."""
        data = state.model_dump(mode="json") if isinstance(state, Model | Root) else state
        if violations := self._bound.registry.find_validator(self._kind.name).find_errors(data, "state"):
            raise InvalidState(f"no state of a {self._kind.noun}:\n" + "\n".join(violations))
        return data

    def _to_model(self, state: Any) -> Any:
        return state if self._model is None else self._model.model_validate(state)


class CallHandles(Generic[NameT, HandleT]):
    """The base of a handler's `ctx.handles`: generated classes have a member for each kind.

    It is generic in the names of the arguments that are ids of handles, and in the type of these handles.
    """

    def __init__(self, bound: Bound) -> None:
        """Take the handles of the call."""
        self._bound = bound

    @classmethod
    def from_context(cls, context: Context, /) -> Self:
        """Return the handles of a request."""
        return cls(context._request.handles)

    def __contains__(self, name: str) -> bool:
        """Return whether an argument that is the id of a handle was sent: its name, or a JSON Pointer."""
        return self._pointer(name) is not None

    def __getitem__(self, name: NameT, /) -> HandleT:
        """Return the handle of an argument, by its name, or by the JSON Pointer to its place.

        Raises:
            KeyError: The arguments have no id of a handle there.
        """
        return cast("HandleT", self._given(str(name)))

    def _model(self, kind: str) -> Any:
        """Return the class of the states of a kind; `None` if they are plain JSON."""
        raise NotImplementedError

    def _kind(self, name: str) -> Handles[Any, Any]:
        return Handles(self._bound, name, self._model(name))

    def _given(self, name: str) -> Handle[Any, Any]:
        pointer = self._pointer(name)
        if pointer is None:
            raise KeyError(f"the arguments of this call have no id of a handle at {name!r}")
        kind, handle = self._bound.given[pointer]
        model = self._model(kind)
        return handle if model is None else replace(handle, state=model.model_validate(handle.state))

    def _pointer(self, name: str) -> str | None:
        as_pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        return next((pointer for pointer in (as_pointer, name) if pointer in self._bound.given), None)


class HandleRegistry:
    """The handles of one server.

    Attributes:
        kinds: Its kinds, by name.
        store: The store that keeps them.
    """

    def __init__(self, server: ServerContext, refuse_result: Callable[[Tool, Sequence[str]], Outcome]) -> None:
        """Take the server's shared objects, and what refuses a result with unknown handles."""
        self._server = server
        self._refuse_result = refuse_result
        self.store = server.store
        package = server.package
        declared: Mapping[str, Mapping[str, Any]] = package.manifest["handles"]
        trust = _trust(package.manifest.get("auth"))
        self.kinds = {
            name: _Kind(
                name,
                f"handle:{name}{trust}",
                parse_duration(settings["ttl"]) if "ttl" in settings else None,
                parse_duration(settings["idle"]) if "idle" in settings else None,
                settings.get("most", _MOST),
                _makers(name, package.tools.values()),
            )
            for name, settings in declared.items()
        }
        self._validators: dict[str, Validator] = {}

    def wrap(self, tool: Tool, call_next: CallHandler) -> CallHandler:
        """Look up the handles of the calls of a tool, and refuse calls with an unknown handle."""

        async def call(request: Request) -> Outcome:
            bound = await self.bind(tool, request.arguments, request.principal)
            if isinstance(bound, Outcome):
                return bound
            request.handles = bound
            outcome = await call_next(request)
            if request.begin is not None or not (faults := await self.find_broken(tool, outcome, bound)):
                return outcome
            return self._refuse_result(tool, faults)

        return call

    async def bind(self, tool: Tool, arguments: Mapping[str, Any], principal: Principal) -> Bound | Outcome:
        """Return the handles of a call, those among its arguments looked up; or why the call cannot go on.

        Args:
            tool: The tool.
            arguments: Valid ones.
            principal: The caller.

        Raises:
            StateLost: The store cannot be reached.
        """
        bound = Bound(self, principal, redaction.make_hider())
        ids = _ids(tool, "input", arguments)
        for _, handle_id in ids.values():
            bound.hide(handle_id)
        if len({*ids.values()}) > _MOST_AT_ONCE:
            text = f"Invalid arguments for {tool.name}: more than {_MOST_AT_ONCE:,} handles in one call"
            return refuse(text, "invalid", "unknown_handle")
        handles = await self._find_all(ids.values(), bound)
        missing = [
            f"the {self.kinds[kind].noun} in {_place(pointer)} {self.describe_unknown(kind, bound.principal)}"
            for pointer, (kind, handle_id) in sorted(ids.items())
            if handles[kind, handle_id] is None
        ]
        if missing:
            lines = f" {missing[0]}" if len(missing) == 1 else "".join(f"\n- {line}" for line in missing)
            return refuse(f"{tool.name} did not run:{lines}", "invalid", "unknown_handle")
        for pointer, (kind, handle_id) in ids.items():
            handle = handles[kind, handle_id]
            if handle is not None:
                bound.given[pointer] = kind, handle
        return bound

    async def find_broken(self, tool: Tool, outcome: Outcome, bound: Bound) -> list[str]:
        """Return the faults of the ids in a result, which must belong to handles of the caller.

        Raises:
            StateLost: The store cannot be reached.
        """
        ids = _ids(tool, "output", outcome.result.get("structuredContent"))
        unchecked = {entry for entry in ids.values() if entry not in bound.known}
        if len(unchecked) > _MOST_AT_ONCE:
            return [f"result: more than {_MOST_AT_ONCE:,} handles in one result"]
        handles = await self._find_all(unchecked, bound)
        return [
            f"{_place(pointer)}: not the id of a {self.kinds[entry[0]].noun} that the caller has"
            for pointer, entry in ids.items()
            if entry in handles and handles[entry] is None
        ]

    async def find(self, kind: _Kind, handle_id: str, bound: Bound) -> Handle[Any, Any] | None:
        """Return a handle of the caller's, whose state is JSON; `None` if there is none.

        Raises:
            StateLost: The store cannot be reached.
        """
        record = await self.store.get(kind.stored, _key(bound.principal.key, handle_id))
        if record is None:
            return None
        stored: dict[str, Any] = json.loads(record.data)
        if stored["owner"] != bound.principal.key:
            return None
        if self.find_validator(kind.name).find_errors(stored["state"], "state"):
            log().warning("a stored %s no longer fits the manifest; it is treated as gone", kind.noun)
            return None
        bound.known.add((kind.name, handle_id))
        created = datetime.fromtimestamp(stored["created"], UTC)
        expires = None if kind.ttl is None else created + timedelta(seconds=kind.ttl)
        return Handle(handle_id, stored["state"], created, expires, record.version)

    def describe_unknown(self, kind: str, principal: Principal) -> str:
        """Return the words for a handle that is not there, which name the tools that make a new one for this caller."""
        scopes, listed = self._server.scopes, self._server.lists.by_name["tools"]
        makers = [
            name
            for name in self.kinds[kind].makers
            if name in listed and (scopes is None or scopes.allows(principal, "tools", name))
        ]
        hint = f"; {' or '.join(makers)} makes a new one" if makers else ""
        return f"is unknown or has expired{hint}"

    def find_validator(self, kind: str) -> Validator:
        """Return the validator of a kind's state, compiled when it is first asked for."""
        if kind not in self._validators:
            state = self._server.package.manifest["handles"][kind]["state"]
            self._validators[kind] = compile_package_validator(self._server.package, state)
        return self._validators[kind]

    async def _find_all(
        self, ids: Iterable[tuple[str, str]], bound: Bound
    ) -> dict[tuple[str, str], Handle[Any, Any] | None]:
        """Return the handles with these kinds and ids, each looked up once."""
        distinct = [*dict.fromkeys(ids)]
        handles = await asyncio.gather(*(self.find(self.kinds[kind], handle_id, bound) for kind, handle_id in distinct))
        return dict(zip(distinct, handles, strict=True))


def _key(owner: str, handle_id: str) -> str:
    """Return the key of a handle in the store. Only its owner can find it, or keep it from being idle by reading it."""
    return json.dumps([owner, handle_id])


def _ids(tool: Tool, side: handle_ids.Side, value: object) -> dict[str, tuple[str, str]]:
    """Return the ids in a value, with their kinds, by their JSON pointers."""
    kinds = handle_ids.find_ids(tool, side, value)
    return {pointer: (kind, handle_ids.get_at(value, pointer)) for pointer, kind in kinds.items()}


def _makers(kind: str, tools: Iterable[Tool]) -> list[str]:
    """Return the tools whose results have a handle; if some of them take none of that kind, these alone."""
    candidates: list[tuple[str, bool]] = []
    for tool in tools:
        declared: Mapping[str, Mapping[str, str]] = tool.extension.get("handles") or {}
        if kind in declared.get("output", {}).values():
            candidates.append((tool.name, kind in declared.get("input", {}).values()))
    fresh = [name for name, takes_one in candidates if not takes_one]
    return fresh or [name for name, _ in candidates]


def _trust(auth: Mapping[str, Any] | None) -> str:
    """Return a suffix that separates the handles of different `auth` settings, so that a change loses them."""
    if not auth:
        return ""
    text = json.dumps([auth.get("issuer"), auth.get("audience")])
    return f":{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _place(pointer: str) -> str:
    """Return a JSON pointer as a readable path."""
    path = ""
    for step in split_pointer(pointer):
        path += f"[{step}]" if step.isdecimal() and path else f".{step}" if path else step
    return path
