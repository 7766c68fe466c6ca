"""Null for optional arguments, as some frameworks send for all omitted arguments (`wire: {nulls: omitted}`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from packages import generate, imported, manifest, tool
from server_fixture import HELLO
from server_process import Process
from stubwright_runtime.server.calls.nulls import find_refusing

if TYPE_CHECKING:
    from pathlib import Path

PROPERTIES: dict[str, Any] = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "place": {"$ref": "#/schemas/Place"},
    "note": {"type": ["string", "null"]},
    "any": {},
}
PLACE: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
REQUIRED: dict[str, Any] = {"properties": PROPERTIES, "required": ["text"], "additionalProperties": False}

OMIT = "; omit the key if it has no value"

HANDLERS = """
from process_mcp.handlers import ProcessHandlers

class Handlers(ProcessHandlers):
    def say(self, args, ctx):
        return args.model_dump_json(exclude_unset=True)

    def sit(self, args, ctx):
        return "sat"
"""


def make(folder: Path, **wire: str) -> str:
    say = tool("say")
    say["inputSchema"] |= REQUIRED
    value = manifest(
        [say, tool("sit", {"note": PROPERTIES["note"]})],
        name="process",
        schemas={"Place": PLACE},
        python={"handlers": "desk:Handlers"},
        **({"wire": wire} if wire else {}),
    )
    (folder / "desk.py").write_text(HANDLERS)
    return generate(folder, value)


def call_all(folder: Path, *calls: dict[str, Any]) -> tuple[list[tuple[bool, str]], str]:
    """Return the results of calls of `say` over stdio, and the log."""
    process = Process(folder)
    try:
        process.send("initialize", {**HELLO, "protocolVersion": "2025-11-25"})
        process.receive()
        results = []
        for arguments in calls:
            process.call("say", **arguments)
            result = process.receive()["result"]
            results.append((result.get("isError", False), result["content"][0]["text"]))
        process.close()
        _, log, _ = process.end()
    finally:
        process.kill()
    return results, log


def test_null_for_an_optional_argument_is_omitted_and_logged_once(tmp_path: Path) -> None:
    make(tmp_path, nulls="omitted")
    nulls = {"count": None, "place": None, "note": None, "any": None}
    results, log = call_all(
        tmp_path,
        {"text": "a", **nulls},
        {"text": "b", "count": None},
        {"text": "c", "count": 1},
        {"text": None, "count": None},
        {"text": "d", "place": {"city": None}},
    )
    assert results[:3] == [
        (False, '{"text":"a","note":null,"any":null}'),
        (False, '{"text":"b"}'),
        (False, '{"text":"c","count":1}'),
    ]
    assert results[3] == (True, "Invalid arguments for say:\n- text: expected a string, got null")
    assert results[4] == (True, f"Invalid arguments for say:\n- place.city: expected a string, got null{OMIT}")
    (line,) = [line for line in log.splitlines() if "null" in line]
    assert line.endswith("say was called with null for count, place, which is treated as omitted")


def test_null_is_refused_by_default(tmp_path: Path) -> None:
    make(tmp_path)
    results, log = call_all(tmp_path, {"text": "a", "count": None})
    assert results == [(True, f"Invalid arguments for say:\n- count: expected an integer, got null{OMIT}")]
    assert "null" not in log


def test_a_tool_that_takes_null_everywhere_pays_nothing(tmp_path: Path) -> None:
    with imported(tmp_path, make(tmp_path, nulls="omitted")) as package:
        tools = package.TOOLS
        assert find_refusing(tools["say"]) == ["count", "place"]
        assert find_refusing(tools["sit"]) == []


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"$ref": "#/schemas/Place"}, ["city"]),
        ({"allOf": [{"$ref": "#/schemas/Place"}], "required": ["city"]}, []),
        ({"additionalProperties": {"type": "string"}}, []),
        ({"properties": {"a/b": {"type": "string"}, "1": {"const": 1}, "n": {"const": None}}}, ["a/b", "1"]),
    ],
)
def test_arguments_are_found_behind_references(schema: dict[str, Any], names: list[str], tmp_path: Path) -> None:
    say = tool("say")
    say["inputSchema"] = {"type": "object", **schema}
    value = manifest([say], name="refs", schemas={"Place": PLACE}, emit=["server"], wire={"nulls": "omitted"})
    with imported(tmp_path, generate(tmp_path, value)) as package:
        assert find_refusing(package.TOOLS["say"]) == names
