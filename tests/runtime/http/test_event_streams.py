"""Streams that continue over several connections: each message arrives once, in order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import MutableMapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubwright_runtime.server.transports.http.events import AnswerStream, EventStream, EventWriter, Response
from stubwright_runtime.server.transports.http.resumption.log import EventLog
from stubwright_runtime.server.transports.http.resumption.replay import Archive
from stubwright_runtime.server.transports.http.resumption.session_announcer import SessionAnnouncer
from stubwright_runtime.server.transports.http.resumption.shared_replay import SharedReplay
from stubwright_runtime.state.stores import store_at

pytestmark = pytest.mark.anyio

ANSWER = Response.from_answer(200, b'{"answer":1}')
PACKAGE: Any = SimpleNamespace(name="streams_mcp", manifest={"server": {"name": "streams"}})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Client:
    """What arrives at a client, over all of its connections.

    Attributes:
        messages: The messages.
        last: The id of the last event.
        hold: Set while it reads.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.last = ""
        self.starts: list[int] = []
        self.hold = asyncio.Event()
        self.hold.set()

    def line(self) -> EventWriter:
        return EventWriter(self._send)

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self.hold.wait()
        if message["type"] == "http.response.start":
            self.starts.append(message["status"])
            return
        for event in message["body"].decode().split("\r\n\r\n"):
            if found := re.search(r"^id: (.*?)\r$", event, re.MULTILINE):
                self.last = found[1]
            if data := re.search(r"^data: (.+)$", event, re.MULTILINE):
                self.messages.append(data[1])
            elif event.startswith("{"):
                self.messages.append(event)


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what holds is no event
            await asyncio.sleep(0)


STEPS = st.lists(st.sampled_from(["say", "say", "leave", "come back", "come back twice", "release"]), max_size=12)


async def followed(log: EventLog, steps: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the messages of a stream, and the messages to a client that disconnects and resumes."""
    stream, client = AnswerStream(log, "1", has_cursor=True), Client()
    line: EventWriter | None = client.line()
    sent: list[str] = []
    await stream.connect(client.line() if line is None else line)

    async def come_back() -> EventWriter:
        back = client.line()
        position = await log.find(client.last)
        assert position is not None
        await stream.resume(back, position)
        return back

    for step in steps:
        match step:
            case "say":
                sent.append(f'{{"n":{len(sent)}}}')
                await stream.send(sent[-1].encode())
            case "leave" if line is not None:
                stream.disconnect(line)
                line.close()
                line = None
            case "release":
                stream.release()
                line = None
            case "come back":
                line = await come_back()
            case "come back twice":
                await come_back()
                line = await come_back()
            case _:
                pass
    await stream.finish(ANSWER)
    stream.end()
    sent.append(ANSWER.body.decode())
    if client.messages[-1:] != sent[-1:]:
        position = await log.find(client.last)
        assert position is not None
        await EventStream(log, "1", has_ended=True).resume(client.line(), position)
    return sent, client.messages


@pytest.mark.long
@given(steps=STEPS)
def test_each_message_arrives_once_and_in_order(steps: Sequence[str]) -> None:
    async def all_logs() -> None:
        async with (store := store_at("memory://", PACKAGE)).run():
            for log in (Archive().open_session(), SharedReplay(SessionAnnouncer(store))):
                sent, got = await followed(log, steps)
                assert got == sent

    asyncio.run(all_logs())


async def test_a_client_that_comes_back_does_not_wait_for_its_lost_connection() -> None:
    log, lost, client = Archive().open_session(), Client(), Client()
    stream = AnswerStream(log, "1", has_cursor=True)
    await stream.connect(lost.line())
    lost.hold.clear()  # the network has gone, and the server does not know
    saying = asyncio.create_task(stream.send(b'{"n":0}'))
    await asyncio.sleep(0.01)
    assert not saying.done()
    position = await log.find(lost.last)
    assert position is not None
    async with asyncio.timeout(60):
        await stream.resume(client.line(), position)
        await saying
        await stream.send(b'{"n":1}')
    assert (client.messages, lost.messages) == (['{"n":0}', '{"n":1}'], [])


async def test_a_stream_that_is_over_ends_a_connection_that_comes_late() -> None:
    stream, client = EventStream(Archive().open_session(), "_"), Client()
    stream.end()
    line = client.line()
    await stream.connect(line)

    async def never() -> Any:
        await asyncio.sleep(3600)

    async with asyncio.timeout(60):
        assert await line.serve(never) is False
    assert client.starts == [200]


@pytest.mark.parametrize("kept", [True, False])
async def test_nothing_waits_for_a_client_that_has_gone_before_its_stream_began(kept: bool) -> None:
    log = Archive().open_session() if kept else None
    stream = AnswerStream(log, "1")
    await stream.send(b'{"n":0}')
    assert stream._waiting
    stream.disconnect(Client().line())
    for number in range(100):
        await stream.send(b'{"n":%d}' % number)
    assert not stream._waiting
    await stream.finish(ANSWER)


async def test_an_answer_alone_keeps_its_status_where_nothing_is_kept() -> None:
    stream, client = AnswerStream(), Client()
    await stream.finish(Response.from_answer(400, b'{"error":1}'))
    await stream.connect(client.line())
    assert (client.starts, client.messages) == ([400], ['{"error":1}'])
    stream, client = AnswerStream(), Client()
    await stream.connect(client.line())
    await stream.send(b'{"n":0}')
    await stream.finish(Response.from_answer(400, b'{"error":1}'))
    assert (client.starts, client.messages) == ([200], ['{"n":0}', '{"error":1}'])
