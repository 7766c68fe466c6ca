"""Parses the recording format: JSON lines, with a header for each run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

HEADER: Final = "stubwright"
KIND: Final = "recording"
VERSION: Final = 1

_SENDERS: Final = ("client", "server")
_CONTENTS: Final = frozenset({"message", "unreadable", "status"})
"""The content keys of a line: a message, the size of an unreadable message, or an HTTP response status."""


_PARTS: Final = 5_000_000
"""The maximum number of objects and arrays in a recording, since an empty list uses 32 times its size in memory."""


class RecordingError(ValueError):
    """A file is not a recording or has an invalid line; the message includes the line number and the reason."""

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")


@dataclass(frozen=True, slots=True)
class Line:
    """One line with messages.

    Attributes:
        number: The line number, starting at 1.
        run: The run that recorded the line.
        exchange: Over HTTP, the number of the request.
        is_from_client: True if a client, not the server, sent the messages.
        messages: One message, or a batch; empty if they were unreadable.
    """

    number: int
    run: str
    exchange: int | None
    is_from_client: bool
    messages: tuple[Mapping[str, Any], ...]


def count_whole(path: str, data: bytes) -> int:
    """Return the size of a recording's complete lines, since `record` can be killed while it writes a line.

    Raises:
        RecordingError: The file is not a recording.
    """
    if data:
        _check_header(path, 1, _parse(path, 1, data.split(b"\n", 1)[0]))
    return data.rfind(b"\n") + 1


def parse(path: str, data: bytes) -> Iterator[Line]:
    """Yield the lines with messages, ignoring an incomplete line at the end.

    Raises:
        RecordingError: The file is not a recording, a line is invalid, or its values would need too much memory.
    """
    if not data.strip():
        raise RecordingError(path, 1, "the file is empty; a recording starts with a header")
    runs: set[str] = set()
    parts = 0
    for number, text in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        parts += text.count(b"[") + text.count(b"{")
        if parts > _PARTS:
            raise RecordingError(
                path, number, f"more than {_PARTS:,} objects and arrays up to this line; record fewer calls"
            )
        value = _parse(path, number, text)
        if number == 1 or HEADER in value:
            _check_header(path, number, value)
            runs.add(value["run"])
        else:
            yield _read_line(path, number, value, runs)


def _parse(path: str, number: int, text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        if number == 1:
            raise RecordingError(path, 1, "this is not a recording; write one with `stubwright record`") from None
        raise RecordingError(path, number, f"this line is not JSON: {why}") from None
    if not isinstance(value, dict):
        raise RecordingError(path, number, "this line is not an object")
    return value


def _check_header(path: str, number: int, value: Mapping[str, Any]) -> None:
    if value.get(HEADER) != KIND:
        raise RecordingError(path, number, "this is not a recording; write one with `stubwright record`")
    if value.get("version") != VERSION:
        raise RecordingError(path, number, f"its format version is {json.dumps(value.get('version'))}, not {VERSION}")
    if not isinstance(value.get("run"), str):
        raise RecordingError(path, number, "the header has no `run`")


def _read_line(path: str, number: int, value: Mapping[str, Any], runs: set[str]) -> Line:
    if value.get("run") not in runs:
        raise RecordingError(path, number, "no earlier line is the header for its `run`")
    if value.get("from") not in _SENDERS:
        raise RecordingError(path, number, "`from` is neither `client` nor `server`")
    exchange = value.get("exchange")
    if exchange is not None and not isinstance(exchange, int):
        raise RecordingError(path, number, "`exchange` is not a number")
    if not _CONTENTS & value.keys():
        raise RecordingError(path, number, "the line has no `message`")
    message = value.get("message")
    messages = message if isinstance(message, list) else [] if message is None else [message]
    if not all(isinstance(each, dict) for each in messages):
        raise RecordingError(path, number, "`message` is not a JSON-RPC message")
    return Line(number, value["run"], exchange, value["from"] == "client", tuple(messages))
