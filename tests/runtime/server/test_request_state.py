"""Sealing of `requestState`: key rotation, a lost store, and ownership."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from stubwright_runtime.mcp.errors import ProtocolError
from stubwright_runtime.server.core.access_tokens import AccessToken
from stubwright_runtime.server.core.principal import ANONYMOUS, Principal, make_from_token, make_local
from stubwright_runtime.server.features.request_states import RequestStates
from stubwright_runtime.state.store import StateLost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

pytestmark = pytest.mark.anyio

OLD, NEW = b"o" * 32, b"n" * 32
CALL = {"name": "pay", "arguments": {"sum": 3}}
PLAIN = '{"asked":["who"]}'
REFUSED = (-32602, "Invalid or expired requestState", {"reason": "invalid_request_state"})


@dataclass
class Keys:
    """The only part of a store that the step knows."""

    keys: Sequence[bytes] | None = (OLD,)

    async def list_secrets(self) -> Sequence[bytes]:
        if self.keys is None:
            raise StateLost
        return self.keys


LOCAL = make_local([])


@dataclass
class Sent:
    """A request."""

    params: Mapping[str, Any] | None
    method: str = "tools/call"
    principal: Principal = LOCAL


class Server:
    """Seals a state in the first round, and opens it in the second."""

    def __init__(self, store: Keys) -> None:
        any_store: Any = store
        self.states = RequestStates(any_store, "shop", 3600)

    async def get(self, params: Mapping[str, Any], **sent: Any) -> Any:
        request: Any = Sent(params, **sent)
        if (state := params.get("requestState")) is None:
            return {"requestState": await self.states.seal(PLAIN, request)}
        return await self.states.open(state, request)

    async def ask(self, **sent: Any) -> Any:
        return (await self.get(CALL, **sent))["requestState"]

    async def opens(self, state: Any, **sent: Any) -> bool:
        return bool(await self.get({**CALL, "requestState": state}, **sent) == PLAIN)

    async def refuses(self, state: Any, **sent: Any) -> bool:
        """Whether a state is refused in the words that all such states are."""
        with pytest.raises(ProtocolError) as refused:
            await self.get({**CALL, "requestState": state}, **sent)
        error = refused.value
        return (error.code, error.message, error.data) == REFUSED


async def test_keys_may_change_while_servers_run() -> None:
    """The order in which users deploy: all processes accept the new key before a process seals with it."""
    store, other = Keys(), Keys()
    server, elsewhere = Server(store), Server(other)
    first = await server.ask()
    assert await elsewhere.opens(first)
    store.keys = (NEW, OLD)
    assert await server.opens(first)
    second = await server.ask()
    assert await elsewhere.refuses(second)
    other.keys = (OLD, NEW)
    assert await elsewhere.opens(second)
    store.keys = other.keys = (NEW,)
    assert await server.refuses(first)
    assert await elsewhere.opens(second)


async def test_a_lost_store_stops_no_server_that_has_its_keys() -> None:
    store = Keys()
    server, late = Server(store), Server(store)
    state = await server.ask()
    store.keys = None
    assert await server.opens(state)
    assert await server.opens(await server.ask())
    with pytest.raises(StateLost, match="cannot decrypt") as lost:
        await late.opens(state)
    assert not lost.value.is_unknown
    with pytest.raises(StateLost, match="cannot encrypt") as lost:
        await late.ask()
    assert lost.value.is_unknown  # the handler ran


def make_token(subject: str | None, client: str = "app", issuer: str = "https://id.example") -> Principal:
    return make_from_token(AccessToken(client_id=client, subject=subject, claims={"iss": issuer}))


async def test_a_state_is_its_callers() -> None:
    server = Server(Keys())
    callers = [
        LOCAL,
        ANONYMOUS,
        make_token("ann"),
        make_token("bob"),
        make_token("ann", "other"),
        make_token("ann", issuer="https://other.example"),
        make_token(None),
    ]
    states = [await server.ask(principal=caller) for caller in callers]
    for caller, own in zip(callers, states, strict=True):
        for state in states:
            assert await (server.opens if state is own else server.refuses)(state, principal=caller)


async def test_the_log_says_why(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(Keys())
    state = await server.ask()
    assert await server.refuses(f"{state}x")
    assert await server.refuses({"a": state})
    assert await server.refuses(state, method="prompts/get")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    assert await server.refuses(state)
    assert [record.getMessage() for record in caplog.records] == [
        "rejected a requestState for tools/call: it is malformed",
        "rejected a requestState for tools/call: it is malformed",
        "rejected a requestState for prompts/get: it belongs to another call",
        "rejected a requestState for tools/call: it has expired",
    ]
    assert state[:20] not in caplog.text
