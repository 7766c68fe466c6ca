"""Clients that resume missed messages: cost, responses, and their maximum number."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from stubwright_runtime.server.core.access_tokens import CALLER, AccessToken
from stubwright_runtime.server.core.principal import Principal
from stubwright_runtime.server.core.streams import Streams, TooManyStreamsError
from stubwright_runtime.server.transports.http.authentication import Caller
from stubwright_runtime.server.transports.http.resumption import shared_replay as resumption
from stubwright_runtime.server.transports.http.resumption.session_announcer import SessionAnnouncer
from stubwright_runtime.server.transports.http.resumption.shared_replay import Resumption, SharedReplay
from stubwright_runtime.state.store import Store
from stubwright_runtime.state.stores import store_at

pytestmark = pytest.mark.anyio

SHOP: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": "shop"}})
ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{}}'


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def note(text: str) -> bytes:
    return b'{"jsonrpc":"2.0","method":"note","params":{"text":%b}}' % json.dumps(text).encode()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = store_at(url, SHOP)
    async with store.run():
        yield store


def as_user(name: str) -> None:
    """Have what follows in this test be done by that user."""
    token = AccessToken(token="", client_id="c", scopes=(), subject=name, claims={"iss": "https://auth.example.com"})
    CALLER.set(Caller(token))


async def replayed(replay: SharedReplay, last: str) -> tuple[str | None, list[str]]:
    """The stream that is known by an id, and the texts that came after it."""
    texts: list[str] = []

    async def send(message: bytes, _name: str) -> None:
        said = json.loads(message)
        texts.append(said["params"]["text"] if "method" in said else "answer")

    position = await replay.find(last)
    if position is None:
        return None, []
    await replay.replay(position, send)
    return position.stream, texts


def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often the store is asked, and how many bytes it gives."""
    counts = {"asked": 0, "bytes": 0}
    get, size = store.get, store.measure

    async def counting_get(kind: str, key: str) -> Any:
        record = await get(kind, key)
        counts["asked"] += 1
        counts["bytes"] += 0 if record is None else len(record.data)
        return record

    async def counting_size(kind: str, key: str) -> int | None:
        counts["asked"] += 1
        return await size(kind, key)

    async def refused(*_: Any) -> Any:
        raise AssertionError("all messages of a session are read")

    monkeypatch.setattr(store, "get", counting_get)
    monkeypatch.setattr(store, "measure", counting_size)
    monkeypatch.setattr(store, "list_owned", refused)
    return counts


async def test_only_what_came_after_is_read(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(state) as store:
        replay = SharedReplay(SessionAnnouncer(store))
        first = await replay.append("7", None)
        ids = [await replay.append(stream, note(f"{'x' * 9000}{n}")) for n in range(20) for stream in ("7", "8")]
        last = await replay.append("7", ANSWER, is_answer=True)
        counts = counted(store, monkeypatch)
        assert await replayed(replay, ids[-2]) == ("7", ["answer"])
        assert counts["bytes"] < 100
        assert await replayed(replay, last) == (None, []), "after an answer nothing comes"
        assert counts["bytes"] < 100
        assert (await replayed(replay, ids[-6]))[1] == [f"{'x' * 9000}{n}" for n in (18, 19)] + ["answer"]
        assert counts["bytes"] < 19_000
        assert len((await replayed(replay, first))[1]) == 21


async def test_an_id_that_nobody_was_given_costs_three_short_looks(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(state) as store:
        as_user("alice")
        replay = SharedReplay(SessionAnnouncer(store))
        for number in range(5):
            last = await replay.append("7", note(f"{number}"))
        name, _, stream = last.partition("/")
        session = name.partition(".")[0]
        odd = ("", "/", "x", last[:-1], f" {last}", f"{name}\u0665/7", f"{session}.05/7", f"{session}.-1/7", "x" * 9000)
        counts = counted(store, monkeypatch)
        for each in odd:
            assert await replayed(replay, each) == (None, [])
            assert await resumption._locate(store, each) is None
        assert counts["asked"] == 0
        for each in (f"{name}0/{stream}", f"{name}/8", f"{session[::-1]}.5/7"):
            assert await resumption._locate(store, each) is None
        as_user("mallory")
        assert await replayed(replay, last) == (None, [])
        assert await resumption._locate(store, last) is None
        assert counts == {"asked": 12, "bytes": 0}
        as_user("alice")
        assert await replayed(replay, last) == ("7", [])


async def test_an_answer_is_found_where_messages_before_it_are_gone(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumption, "_EVENTS", 5)
    async with opened(state) as store:
        replay = SharedReplay(SessionAnnouncer(store))
        first = await replay.append("7", None)
        for number in range(9):
            await replay.append("7", note(f"{number}"))
        assert await replayed(replay, first) == ("7", [])
        await replay.append("7", ANSWER, is_answer=True)
        assert await replayed(replay, first) == ("7", ["answer"])


async def test_an_answer_that_is_sent_again_stays(state: str) -> None:
    async with opened(state) as store:
        replay = SharedReplay(SessionAnnouncer(store))
        first = await replay.append("7", None)
        await replay.append("7", ANSWER, is_answer=True)
        for _ in range(2):
            assert await replayed(replay, first) == ("7", ["answer"])


async def test_a_message_of_another_session_is_not_of_this_one(state: str) -> None:
    async with opened(state) as store:
        first = await SharedReplay(SessionAnnouncer(store)).append("7", None)
        other = SharedReplay(SessionAnnouncer(store))
        await other.append("7", note("other"))
        assert await replayed(other, first) == (None, [])


async def test_messages_that_come_at_once_have_numbers_of_their_own(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumption, "_EVENTS", 20)
    async with opened(state) as store:
        replay = SharedReplay(SessionAnnouncer(store))
        first = await replay.append("7", None)
        ids = await asyncio.gather(*(replay.append("7", note(str(number))) for number in range(19)))
        assert len({*ids}) == 19
        assert sorted((await replayed(replay, first))[1], key=int) == [str(number) for number in range(19)]
        await asyncio.gather(*(replay.append("8", note(str(number))) for number in range(20)))
        assert await replayed(replay, ids[-1]) == ("7", [])


class Waiting:
    """A client that has come back with an id; what it is sent comes one by one."""

    def __init__(self, resumption: Resumption, last: str) -> None:
        self.sent: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._left = asyncio.Event()
        self.task = asyncio.create_task(resumption.answer(last, self._receive, self.sent.put))

    async def _receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    def leave(self) -> None:
        self._left.set()

    async def status(self) -> int:
        found: int = (await asyncio.wait_for(self.sent.get(), 60))["status"]
        return found

    async def text(self) -> str:
        body: bytes = (await asyncio.wait_for(self.sent.get(), 60))["body"]
        return body.decode()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what holds is no event
            await asyncio.sleep(0.01)


async def test_who_waits_is_woken_and_does_not_look(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "POLL_INTERVAL", 1000.0)
    async with opened(state) as store:
        announcer = SessionAnnouncer(store)
        replay = SharedReplay(announcer)
        other = SharedReplay(announcer)
        first = await replay.append("7", None)
        waiting = Waiting(Resumption(announcer), first)
        assert await waiting.status() == 200
        await until(lambda: announcer._until)
        published: list[str] = []
        publish = store.publish

        async def noting(topic: str, data: bytes) -> None:
            published.append(topic)
            await publish(topic, data)

        monkeypatch.setattr(store, "publish", noting)
        counts = counted(store, monkeypatch)
        for _ in range(5):
            await other.append("7", note("of a session that nobody waits for"))
        assert published == []
        await replay.append("7", note("half"))
        assert '"text":"half"' in await waiting.text()
        await replay.append("7", ANSWER, is_answer=True)
        assert '"id":7' in await waiting.text()
        await waiting.task
        assert published == ["events-kept", "events-kept"]
        assert counts["asked"] < 12


async def test_a_word_that_is_missed_is_made_up_for(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(state) as store:
        announcer = SessionAnnouncer(store)
        replay = SharedReplay(announcer)
        first = await replay.append("7", None)

        async def lost(topic: str, data: bytes) -> None:
            """Discard the message."""

        monkeypatch.setattr(store, "publish", lost)
        monkeypatch.setattr(resumption, "POLL_INTERVAL", 1000.0)
        app = Resumption(announcer)
        waiting = Waiting(app, first)
        assert await waiting.status() == 200
        await replay.append("7", note("one"))
        await announcer._on_event(None)  # as the store reports a possible loss
        assert '"text":"one"' in await waiting.text()
        waiting.leave()
        await asyncio.wait_for(waiting.task, 60)
        assert not announcer._waiting
        monkeypatch.setattr(resumption, "POLL_INTERVAL", 0.05)
        waiting = Waiting(app, first)
        assert await waiting.status() == 200
        assert '"text":"one"' in await waiting.text()
        await replay.append("7", ANSWER, is_answer=True)
        assert '"id":7' in await waiting.text()


async def test_who_waits_in_vain_is_told_to_come_again(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "MAX_WAIT", 0.1)
    async with opened(state) as store:
        announcer = SessionAnnouncer(store)
        first = await SharedReplay(announcer).append("7", None)
        waiting = Waiting(Resumption(announcer), first)
        assert await waiting.status() == 200
        assert await waiting.text() == f"id: {first}\r\nretry: 1000\r\ndata: \r\n\r\n"
        await asyncio.wait_for(waiting.task, 60)


async def test_large_messages_are_read_when_there_is_room(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "_LARGE", 1000)
    monkeypatch.setattr(resumption, "_SENDING", 0.3)
    async with opened(state) as store:
        announcer = SessionAnnouncer(store)
        replay = SharedReplay(announcer)
        first = await replay.append("7", None)
        await replay.append("7", note("x" * 2000))
        counts = counted(store, monkeypatch)
        app = Resumption(announcer)
        taking, sent = asyncio.Event(), 0

        async def never() -> dict[str, Any]:
            await asyncio.sleep(3600)
            return {}

        async def slow(message: MutableMapping[str, Any]) -> None:
            nonlocal sent
            if len(message.get("body", b"")) > 1000:
                sent += 1
                await taking.wait()

        clients = [asyncio.create_task(app.answer(first, never, slow)) for _ in range(7)]
        await until(lambda: sent == 4)
        assert counts["bytes"] < 4 * 2100
        await until(lambda: sent == 7)  # clients that did not read were disconnected
        taking.set()
        for client in clients:
            client.cancel()
        await asyncio.wait(clients)


async def test_one_caller_has_so_many_streams_and_all_together_have() -> None:
    streams = Streams(3, 2)
    alice, bob = (Principal("token", subject=name) for name in ("alice", "bob"))
    with streams.count(alice), streams.count(alice):
        with pytest.raises(
            TooManyStreamsError, match=r"^You have 2 open streams\. Close one, or try again later\.$"
        ) as found:
            streams.count(alice).__enter__()
        assert found.value.status == 429
        with streams.count(bob):
            with pytest.raises(TooManyStreamsError, match=r"^The server has too many open streams") as found:
                streams.count(bob).__enter__()
            assert found.value.status == 503
        with streams.count(bob):
            pass
    nobody = Principal("anonymous", subject="anonymous")
    with (
        streams.count(nobody),
        streams.count(nobody),
        streams.count(nobody),
        pytest.raises(TooManyStreamsError) as found,
    ):
        streams.count(nobody).__enter__()
    assert found.value.status == 503
    for numbers in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="stream limits must be at least 1, not 0"):
            Streams(*numbers)
