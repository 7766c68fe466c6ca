"""Transcripts: messages of clients of each revision over stdio, and the responses, byte for byte.

`tests/transcripts/SERVER/REVISION.txt` is both script and expectation: lines that begin with `->` are sent in order,
each after the response to the previous line; lines that begin with `<-` are the responses; `#` begins a comment.
`pytest --update` replays the script and rewrites the responses. The museum is compiled from the manifest next to its
transcripts; the weather server is the committed server in `generated/`.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import jsonschema_rs
import pytest
from conftest import ROOT

import amounts
import forked
from processes import start_process
from stubwright import cli

FOLDER = Path(__file__).parents[1] / "transcripts"
TRANSCRIPTS = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob("*/*.txt"))
SEALED = "(sealed)"
"""Placeholder for the last `requestState`, which varies."""

_STATE = re.compile('"requestState":"([^"]+)"')
_MASK = f'"requestState":"{SEALED}"'
PATIENCE = 30  # seconds

Way: TypeAlias = Literal["->", "<-"]


@pytest.fixture(scope="module")
def museum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the package `museum_mcp`."""
    folder = tmp_path_factory.mktemp("museum")
    assert cli.run(["generate", str(FOLDER / "museum" / "manifest.yaml"), "-o", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", amounts.sample(TRANSCRIPTS, 5))
def test_transcript(name: str, museum: Path, update: bool) -> None:
    server = name.split("/")[0]
    expected = FOLDER / f"{name}.txt"
    paths = [museum, FOLDER / "museum"] if server == "museum" else [ROOT / "generated", ROOT / "examples"]
    with connection(f"{server}_mcp", paths) as connected:
        text = replay(expected.read_text("utf-8"), connected)
    if update:
        expected.write_text(text, "utf-8")
    assert text.splitlines() == expected.read_text("utf-8").splitlines()


@pytest.mark.parametrize("name", amounts.sample(TRANSCRIPTS, 3))
def test_transcript_keeps_to_the_schema_of_its_revision(name: str, corpus: Path) -> None:
    schema = json.loads((corpus / "mcp-schema" / Path(name).name / "schema.json").read_text("utf-8"))
    messages = read((FOLDER / f"{name}.txt").read_text("utf-8"))
    faults = []
    for message, definition in zip(messages, definitions(messages, schema), strict=True):
        for one in ("JSONRPCMessage", definition):
            faults += [f"{one}: {fault}: {message.value}" for fault in violations(message, one, schema)]
    assert not faults, "\n".join(faults)


class Connection:
    """A server in a separate process with a line-by-line client."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def receive(self) -> str:
        """The next line; it is empty where the server has ended."""
        return self._lines.get(timeout=PATIENCE).removesuffix("\n")

    def close(self) -> list[str]:
        """Close the input, and return the remaining lines."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return list(iter(self.receive, ""))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")


@contextmanager
def connection(package: str, paths: Sequence[Path]) -> Iterator[Connection]:
    """Run `python -m` of a package, which must end without errors when its input ends."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [*forked.interpreter(), "-m", package]
    pipe = subprocess.PIPE
    with start_process(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8") as process:
        yield Connection(process)
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def replay(script: str, connected: Connection) -> str:
    """Run a script, and return it with the actual responses."""
    told: list[str] = []
    awaited: set[int | str] = set()
    state = ""
    for line in script.splitlines():
        if line.startswith("<-"):
            continue
        told.append(line)
        if not line.startswith("->"):
            continue
        connected.send(line.removeprefix("-> ").replace(SEALED, state))
        awaited |= {one.value["id"] for one in read(line) if "method" in one.value and "id" in one.value}
        while awaited:
            received = connected.receive()
            if sealed := _STATE.search(received):
                state = sealed[1]
            told.append(f"<- {_STATE.sub(_MASK, received)}")
            if not received:
                raise AssertionError("\n".join(["the server ended:", *told]))
            answer = json.loads(received)
            if isinstance(answer, list):  # to a batch
                awaited -= {one["id"] for one in answer}
            elif "method" not in answer:
                awaited.discard(answer["id"])
            elif "id" in answer:
                break  # a question, which the next line of the script answers
    told += [f"<- {line}" for line in connected.close()]
    return "\n".join(told) + "\n"


@dataclass(frozen=True, slots=True)
class Message:
    """A line of a transcript."""

    way: Way
    value: Any


def read(transcript: str) -> list[Message]:
    """Return the messages of a transcript, including messages in batches."""
    lines = [(line[:2], json.loads(line[3:])) for line in transcript.splitlines() if line[:3] in ("-> ", "<- ")]
    return [
        Message("->" if way == "->" else "<-", value)
        for way, values in lines
        for value in (values if isinstance(values, list) else [values])
    ]


def definitions(messages: Sequence[Message], schema: Any) -> list[str]:
    """Return the schema's name of each message, by its method, or by the method of its request.

    Rejected requests may be invalid; they only count as messages.
    """
    by_method = {
        parts["properties"]["method"]["const"]: name
        for name, parts in schema[_word(schema)].items()
        if "const" in parts.get("properties", {}).get("method", {})
    }
    asked = {
        (one.way, one.value["id"]): one.value["method"]
        for one in messages
        if "method" in one.value and "id" in one.value
    }
    refused = {(_WAYS[one.way], one.value["id"]) for one in messages if "error" in one.value}
    found: list[str] = []
    for one in messages:
        if "error" in one.value or (one.way, one.value.get("id")) in refused:
            found.append("JSONRPCMessage")
        elif "method" in one.value:
            found.append(by_method[one.value["method"]])
        elif one.value["result"].get("resultType") == "input_required":
            found.append("InputRequiredResult")
        else:
            request = by_method[asked[_WAYS[one.way], one.value["id"]]]
            result = f"{request.removesuffix('Request')}Result"
            found.append(result if result in schema[_word(schema)] else "EmptyResult")
    return found


def violations(message: Message, definition: str, schema: Any) -> list[str]:
    """What a definition has against a message, or against the result in it."""
    word = _word(schema)
    rooted = {"$schema": schema["$schema"], word: schema[word], "$ref": f"#/{word}/{definition}"}
    value = message.value["result"] if definition.endswith("Result") else message.value
    return [error.message for error in jsonschema_rs.validator_for(rooted, validate_formats=True).iter_errors(value)]


_WAYS: Final[Mapping[Way, Way]] = {"->": "<-", "<-": "->"}


def _word(schema: Any) -> str:
    return "$defs" if "$defs" in schema else "definitions"
