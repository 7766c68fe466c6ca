"""Responses to messages with one odd value, over stdio in each revision, and over HTTP.

`tests/messages/*.txt` was recorded from the official SDK, which once answered all odd messages; `pytest --update`
rewrites the files. Two cases are rejected that the SDK accepts: a progress token that is `true`, because it must be a
string or an integer (schema, `ProgressToken`), and a `listChanged` that is 0, because it must be a boolean (schema,
`ClientCapabilities`). Answers of models among `inputResponses` are validated when their question is answered, like
other answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import amounts
from circles import no_request_cycles
from conversations import READY, REVISIONS, Handlers, handshake
from odd_messages import SERVED, TOOLS, Case, group_cases, odd_openings, odd_requests, out_of_turn, outcome
from packages import generate, imported, manifest
from sink import Sink
from stubwright_runtime.server.app.builder import build_core
from stubwright_runtime.server.app.core import Core
from stubwright_runtime.server.protocol.requests import find_shape
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reader import Line

FOLDER = Path(__file__).parents[2] / "messages"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("odd")
    with imported(folder, generate(folder, manifest(TOOLS, name="odd", **SERVED))) as module:
        yield module


async def asked(core: Core, before: Sequence[Any], message: Any) -> str:
    """Return the responses to a message on a separate connection."""
    sink: Any = Sink()
    connection = Connection(core, sink)
    for earlier in before:
        await connection.handle(Line(json.dumps(earlier).encode()))
    await connection.wait_for_answers()
    sink.lines.clear()
    await connection.handle(Line(json.dumps(message).encode()))
    await connection.wait_for_answers()
    await connection.close()
    return outcome(sink.lines)


async def all_asked(core: Core, before: Iterable[Sequence[Any]], named: Iterable[tuple[str, Iterable[Case]]]) -> str:
    """Return the responses to all cases in the format of a file; sequences of `before` precede them in turn."""
    text = ""
    turns = cycle(before)
    async with core.lifespan():
        with no_request_cycles():
            for name, cases in named:
                text += f"{name}\n" + group_cases(
                    {case.name: await asked(core, next(turns), case.message) for case in cases}
                )
    return text


def compare(name: str, said: str, *, update: bool) -> None:
    path = FOLDER / f"{name}.txt"
    if update:
        path.write_text(said, "utf-8")
    assert said.splitlines() == path.read_text("utf-8").splitlines()


@pytest.mark.parametrize("revisions", [REVISIONS, *(amounts.mark_long([revision]) for revision in REVISIONS)], ids=str)
def test_after_a_handshake(revisions: Sequence[str], package: ModuleType, update: bool) -> None:
    """Revisions take turns, and have all messages each in `make long`."""
    core = build_core(package.TOOLS["say"].package, Handlers())
    before = [[handshake(revision), READY] for revision in revisions]
    said = asyncio.run(all_asked(core, before, odd_requests(stateless=False)))
    compare("handshake", said, update=update)


def test_without_a_handshake(package: ModuleType, update: bool) -> None:
    core = build_core(package.TOOLS["say"].package, Handlers())
    compare("stateless", asyncio.run(all_asked(core, [[]], odd_requests(stateless=True))), update=update)


def test_the_handshake(package: ModuleType, update: bool) -> None:
    core = build_core(package.TOOLS["say"].package, Handlers())
    compare("initialize", asyncio.run(all_asked(core, [[]], [("initialize", odd_openings())])), update=update)


def test_out_of_turn(package: ModuleType, update: bool) -> None:
    core = build_core(package.TOOLS["say"].package, Handlers())

    async def said() -> str:
        async with core.lifespan():
            return group_cases({name: await asked(core, before, message) for name, before, message in out_of_turn()})

    compare("out_of_turn", asyncio.run(said()), update=update)


def test_an_object_as_json_text_is_called_a_string() -> None:
    shape = find_shape("tools/call", stateless=False)
    assert shape is not None
    assert shape.explain({"name": "a", "arguments": "{}"}, "") == "`arguments` must be an object, not a string"
