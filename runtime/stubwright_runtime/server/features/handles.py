"""State handles: state between calls, stored under IDs that the server generates.

A handle is accessible only to its owner.
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
"""The number of random bytes in an ID: 192 bits; MCP requires 128 (2026-07-28, server/tools, on state handles)."""

_DEFAULT_LIMIT: Final = 100
"""The default maximum number of handles of one kind per principal."""

_MAX_IDS: Final = 1_000
"""The maximum number of different IDs in a call's arguments or result."""


class UnknownHandle(ToolError):
    """The handle does not exist, has expired, was deleted, or belongs to another caller."""


class StaleHandle(ToolError):
    """Another call changed the handle's state after this call read it."""


class TooManyHandles(ToolError):
    """The caller already has the maximum number of handles of this kind."""


class InvalidState(ValueError):
    """The state does not match the schema of its handle kind in the manifest."""


@dataclass(frozen=True, slots=True)
class Handle(Generic[_State, _Id]):
    """A snapshot of one handle and its state.

    Attributes:
        id: The ID, which only the owner can use.
        state: The state, as the kind's state class or as JSON.
        created: The creation time in UTC.
        expires: The expiry time in UTC; `None` if the handle expires only when idle.
        version: The number of updates so far.
    """

    id: _Id = field(repr=False)
    state: _State
    created: datetime
    expires: datetime | None
    version: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of handle in the manifest. `makers` are the tools that return handles of this kind."""

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
class HandleScope:
    """The handles that one call can access.

    Attributes:
        registry: The server's handles.
        principal: The caller, who owns the handles.
        hide: Redacts an ID in log lines.
        inputs: The kind and handle for each ID in the arguments, by JSON Pointer.
        known: The kinds and IDs of handles that are known to exist.
    """

    registry: HandleRegistry
    principal: Principal
    hide: Callable[[str], None]
    inputs: dict[str, tuple[str, Handle[Any, Any]]] = field(default_factory=dict[str, tuple[str, "Handle[Any, Any]"]])
    known: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


class Handles(Generic[_State, _Id]):
    """The caller's handles of one kind, as in `ctx.handles.cart`."""

    def __init__(self, bound: HandleScope, name: str, model: Any) -> None:
        """Create the accessor; `model` is the kind's state class, or `None` for plain JSON."""
        self._bound = bound
        self._kind = bound.registry.kinds[name]
        self._model = model

    async def create(self, state: _State) -> _Id:
        """Store a state and return the new handle's ID.

        Raises:
            TooManyHandles: The caller already has the kind's maximum number of handles (`most`).
            BudgetExceeded: The state does not fit the manifest's `storage` limits.
            InvalidState: The state does not match its kind's schema.
            StateLost: The store is unavailable.
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
                f"You already have {count}, which is the limit. Reuse one, delete one, or wait until one expires."
            )
        self._bound.known.add((kind.name, new_id))
        typed_id: _Id = new_id
        return typed_id

    async def get(self, handle_id: _Id) -> Handle[_State, _Id]:
        """Return one of the caller's handles, and restart its idle timeout (`idle`).

        Raises:
            UnknownHandle: The caller has no handle with this ID.
            StateLost: The store is unavailable.
        """
        self._bound.hide(handle_id)
        handle = await self._bound.registry.find(self._kind, handle_id, self._bound)
        if handle is None:
            raise self._unknown()
        return replace(handle, state=self._to_model(handle.state))

    async def update(self, handle: Handle[_State, _Id], state: _State) -> Handle[_State, _Id]:
        """Replace a handle's state, and return the new snapshot.

        Args:
            handle: The snapshot that was read. If several calls update the same version, only one succeeds.
            state: The state to store.

        Raises:
            StaleHandle: Another call changed the state after it was read; read the handle again.
            UnknownHandle: The handle no longer exists.
            BudgetExceeded: The state does not fit the manifest's `storage` limits.
            InvalidState: The state does not match its kind's schema.
            StateLost: The store is unavailable.
        """
        kind, registry, bound = self._kind, self._bound.registry, self._bound
        checked = self._check(state)
        data = self._encode(handle.created, checked)
        owner = bound.principal.key
        key = _key(owner, handle.id)
        if not await registry.store.replace(kind.stored, key, data, version=handle.version, payer=owner):
            if await registry.find(kind, handle.id, bound) is None:
                raise self._unknown()
            raise StaleHandle(f"Another call changed this {kind.noun}, so this change was not saved. Try again.")
        return replace(handle, state=self._to_model(checked), version=handle.version + 1)

    async def delete(self, handle_id: _Id) -> bool:
        """Delete one of the caller's handles, and return whether it existed.

        Raises:
            StateLost: The store is unavailable.
        """
        kind, bound = self._kind, self._bound
        bound.known.discard((kind.name, handle_id))
        owner = bound.principal.key
        return await bound.registry.store.delete(kind.stored, _key(owner, handle_id), payer=owner)

    def _unknown(self) -> UnknownHandle:
        explanation = self._bound.registry.describe_unknown(self._kind.name, self._bound.principal)
        return UnknownHandle(f"This {self._kind.noun} {explanation}.")

    def _encode(self, created: datetime, state: Any) -> bytes:
        record = {"owner": self._bound.principal.key, "created": created.timestamp(), "state": state}
        return json.dumps(record, ensure_ascii=False).encode()

    def _check(self, state: object) -> Any:
        data = state.model_dump(mode="json") if isinstance(state, Model | Root) else state
        if violations := self._bound.registry.find_validator(self._kind.name).find_errors(data, "state"):
            raise InvalidState(f"invalid {self._kind.noun} state:\n" + "\n".join(violations))
        return data

    def _to_model(self, state: Any) -> Any:
        return state if self._model is None else self._model.model_validate(state)


class CallHandles(Generic[NameT, HandleT]):
    """The base class of `ctx.handles`. Generated classes have a member for each kind.

    The type parameters are the names of the arguments that contain handle IDs, and those handles' type.
    """

    def __init__(self, bound: HandleScope) -> None:
        self._bound = bound

    @classmethod
    def from_context(cls, context: Context, /) -> Self:
        """Return the handles of the context's request."""
        return cls(context._request.handles)

    def __contains__(self, name: str) -> bool:
        """Return whether the arguments contain a handle ID at an argument name or JSON Pointer."""
        return self._pointer(name) is not None

    def __getitem__(self, name: NameT, /) -> HandleT:
        """Return the handle at an argument name or JSON Pointer.

        Raises:
            KeyError: The arguments have no handle ID at `name`.
        """
        return cast("HandleT", self._find_argument(str(name)))

    def _model(self, kind: str) -> Any:
        """Return the class for the state of a kind's handles, or `None` for plain JSON."""
        raise NotImplementedError

    def _kind(self, name: str) -> Handles[Any, Any]:
        return Handles(self._bound, name, self._model(name))

    def _find_argument(self, name: str) -> Handle[Any, Any]:
        pointer = self._pointer(name)
        if pointer is None:
            raise KeyError(f"the arguments of this call have no handle ID at {name!r}")
        kind, handle = self._bound.inputs[pointer]
        model = self._model(kind)
        return handle if model is None else replace(handle, state=model.model_validate(handle.state))

    def _pointer(self, name: str) -> str | None:
        as_pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        return next((pointer for pointer in (as_pointer, name) if pointer in self._bound.inputs), None)


class HandleRegistry:
    """One server's kinds of handles, and access to stored handles.

    Attributes:
        kinds: The manifest's handle kinds by name.
        store: Where the handles are stored.
    """

    def __init__(self, server: ServerContext, refuse_result: Callable[[Tool, Sequence[str]], Outcome]) -> None:
        """Create a server's registry; `refuse_result` makes the outcome for results that contain unknown handle IDs."""
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
                settings.get("most", _DEFAULT_LIMIT),
                _find_makers(name, package.tools.values()),
            )
            for name, settings in declared.items()
        }
        self._validators: dict[str, Validator] = {}

    def wrap(self, tool: Tool, call_next: CallHandler) -> CallHandler:
        """Wrap a tool's calls to look up the handles in the arguments, and to refuse unknown handles."""

        async def call(request: Request) -> Outcome:
            bound = await self.bind(tool, request.arguments, request.principal)
            if isinstance(bound, Outcome):
                return bound
            request.handles = bound
            outcome = await call_next(request)
            if request.begin is not None or not (errors := await self.find_invalid_ids(tool, outcome, bound)):
                return outcome
            return self._refuse_result(tool, errors)

        return call

    async def bind(self, tool: Tool, arguments: Mapping[str, Any], principal: Principal) -> HandleScope | Outcome:
        """Return the handles that a call can access, or the outcome if its arguments contain an unknown handle.

        Args:
            tool: The tool to call.
            arguments: The call's arguments, already validated.
            principal: The caller.

        Raises:
            StateLost: The store is unavailable.
        """
        bound = HandleScope(self, principal, redaction.make_hider())
        ids = _find_ids(tool, "input", arguments)
        for _, handle_id in ids.values():
            bound.hide(handle_id)
        if len({*ids.values()}) > _MAX_IDS:
            text = f"Invalid arguments for {tool.name}: more than {_MAX_IDS:,} handles in one call"
            return refuse(text, "invalid", "unknown_handle")
        handles = await self._find_all(ids.values(), bound)
        missing = [
            f"the {self.kinds[kind].noun} in {_format_path(pointer)} {self.describe_unknown(kind, bound.principal)}"
            for pointer, (kind, handle_id) in sorted(ids.items())
            if handles[kind, handle_id] is None
        ]
        if missing:
            lines = f" {missing[0]}" if len(missing) == 1 else "".join(f"\n- {line}" for line in missing)
            return refuse(f"{tool.name} did not run:{lines}", "invalid", "unknown_handle")
        for pointer, (kind, handle_id) in ids.items():
            handle = handles[kind, handle_id]
            if handle is not None:
                bound.inputs[pointer] = kind, handle
        return bound

    async def find_invalid_ids(self, tool: Tool, outcome: Outcome, bound: HandleScope) -> list[str]:
        """Return an error for each ID in a result that is not one of the caller's handles.

        Raises:
            StateLost: The store is unavailable.
        """
        ids = _find_ids(tool, "output", outcome.result.get("structuredContent"))
        unchecked = {entry for entry in ids.values() if entry not in bound.known}
        if len(unchecked) > _MAX_IDS:
            return [f"result: more than {_MAX_IDS:,} handles in one result"]
        handles = await self._find_all(unchecked, bound)
        return [
            f"{_format_path(pointer)}: not the ID of one of the caller's {self.kinds[entry[0]].noun} handles"
            for pointer, entry in ids.items()
            if entry in handles and handles[entry] is None
        ]

    async def find(self, kind: _Kind, handle_id: str, bound: HandleScope) -> Handle[Any, Any] | None:
        """Return one of the caller's handles, with its state as JSON; `None` if it does not exist.

        Raises:
            StateLost: The store is unavailable.
        """
        record = await self.store.get(kind.stored, _key(bound.principal.key, handle_id))
        if record is None:
            return None
        stored: dict[str, Any] = json.loads(record.data)
        if stored["owner"] != bound.principal.key:
            return None
        if self.find_validator(kind.name).find_errors(stored["state"], "state"):
            log().warning("ignoring a stored %s whose state no longer matches the manifest's schema", kind.noun)
            return None
        bound.known.add((kind.name, handle_id))
        created = datetime.fromtimestamp(stored["created"], UTC)
        expires = None if kind.ttl is None else created + timedelta(seconds=kind.ttl)
        return Handle(handle_id, stored["state"], created, expires, record.version)

    def describe_unknown(self, kind: str, principal: Principal) -> str:
        """Return the end of a sentence about an unknown handle, which suggests tools that create a new one."""
        scopes, listed = self._server.scopes, self._server.lists.by_name["tools"]
        makers = [
            name
            for name in self.kinds[kind].makers
            if name in listed and (scopes is None or scopes.allows(principal, "tools", name))
        ]
        hint = f"; {' or '.join(makers)} makes a new one" if makers else ""
        return f"is unknown or has expired{hint}"

    def find_validator(self, kind: str) -> Validator:
        """Return the validator of a kind's state, compiled on first use."""
        if kind not in self._validators:
            state = self._server.package.manifest["handles"][kind]["state"]
            self._validators[kind] = compile_package_validator(self._server.package, state)
        return self._validators[kind]

    async def _find_all(
        self, ids: Iterable[tuple[str, str]], bound: HandleScope
    ) -> dict[tuple[str, str], Handle[Any, Any] | None]:
        distinct = [*dict.fromkeys(ids)]
        handles = await asyncio.gather(*(self.find(self.kinds[kind], handle_id, bound) for kind, handle_id in distinct))
        return dict(zip(distinct, handles, strict=True))


def _key(owner: str, handle_id: str) -> str:
    # The key contains the owner, so that other callers cannot find the handle.
    return json.dumps([owner, handle_id])


def _find_ids(tool: Tool, side: handle_ids.Side, value: object) -> dict[str, tuple[str, str]]:
    kinds = handle_ids.find_ids(tool, side, value)
    return {pointer: (kind, handle_ids.get_at(value, pointer)) for pointer, kind in kinds.items()}


def _find_makers(kind: str, tools: Iterable[Tool]) -> list[str]:
    """Return the names of the tools that create handles of a kind: if possible, only tools that do not require one."""
    candidates: list[tuple[str, bool]] = []
    for tool in tools:
        declared: Mapping[str, Mapping[str, str]] = tool.extension.get("handles") or {}
        if kind in declared.get("output", {}).values():
            candidates.append((tool.name, kind in declared.get("input", {}).values()))
    fresh = [name for name, takes_one in candidates if not takes_one]
    return fresh or [name for name, _ in candidates]


def _trust(auth: Mapping[str, Any] | None) -> str:
    """Return a suffix for store keys that separates handles created under different `auth` settings."""
    if not auth:
        return ""
    text = json.dumps([auth.get("issuer"), auth.get("audience")])
    return f":{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _format_path(pointer: str) -> str:
    """Return a JSON Pointer in the format `items[0].id`, for messages."""
    path = ""
    for step in split_pointer(pointer):
        path += f"[{step}]" if step.isdecimal() and path else f".{step}" if path else step
    return path
