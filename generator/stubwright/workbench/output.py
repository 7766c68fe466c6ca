"""Parses a server's standard error: log records, call records, and printed lines."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stubwright.workbench.journal import Kind

_RECORD: Final = re.compile(
    r"\d{4}-\d\d-\d\d (?P<time>\d\d:\d\d:\d\d),\d{3} (?P<level>[A-Z]+) (?P<name>[\w.]+): (?P<text>.*)"
)
"""The first line of a log record from a generated server; other lines of the record are indented."""

_CALL: Final = '{"time":'


class Line(NamedTuple):
    """A parsed line of standard error; `printed` is the line for the terminal."""

    kind: Kind
    details: Mapping[str, Any]
    printed: str


def read_line(text: str) -> Line:
    """Parse a line of standard error."""
    if text.startswith(_CALL) and (call := _read_call(text)) is not None:
        return Line("call", call, _describe_call(call))
    if (record := _RECORD.fullmatch(text)) is not None:
        return Line("log", record.groupdict(), text)
    return Line("more" if text.startswith("  ") else "print", {"text": text}, text)


def _read_call(text: str) -> Mapping[str, Any] | None:
    """Parse a call record (docs/protecting.md, "Audit"). Return None if the line is not a call record."""
    try:
        call: Any = json.loads(text)
    except ValueError:
        return None
    return call if isinstance(call, dict) and {"outcome", "duration_ms", "tool"} <= call.keys() else None


def _describe_call(call: Mapping[str, Any]) -> str:
    tool = call["tool"] or "a request"
    why = f" ({call['reason']})" if call.get("reason") not in (None, "", call["outcome"]) else ""
    size = call.get("result_bytes")
    sent = "" if size is None else f", {size:,} bytes"
    return f"{tool}: {call['outcome']}{why} in {call['duration_ms']:.0f} ms{sent}"
