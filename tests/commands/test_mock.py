"""`stubwright mock`: servers of manifests without handlers, and their made-up values."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mcp
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.client.stdio import stdio_client

import amounts
import corpus as real
import forked
from command_line import stubwright
from corpus import SHARDS
from packages import generate, imported, manifest, tool
from processes import start_process
from stubwright.jsonschema import instances, patterns
from stubwright.jsonschema.formats import FORMATS
from stubwright.jsonschema.instances.search import Search
from stubwright.mock import names
from stubwright.mock import package as mock_package
from stubwright_runtime.schema.validation import Validator

WEATHER = str(ROOT / "specs" / "weather.yaml")


def valid(schema: Any, value: Any) -> bool:
    return not Validator(schema, formats=True).find_errors(value)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z]{3,5}$",
        "^(GET|POST)$",
        r"^\d{4}-\d{2}-\d{2}$",
        "^v[0-9]+(\\.[0-9]+){2}$",
        "^[^@\\s]+@[^@\\s]+$",
        "^#?[0-9a-fA-F]{6}$",
        "^(?:a|b)*?c+?$",
        "^(?<year>[0-9]{4})$",
        r"^\w+\W\D\S$",
        r"^[\w.-]+/[\]\\^-]$",
        r"^\u0041\x42\t\.$",
        "^a{0}b{2,}$",
        "^[-a]$",
        "",
    ],
)
def test_texts_that_a_pattern_matches(pattern: str) -> None:
    for seed in range(50):
        text = patterns.make_text(pattern, random.Random(seed))
        assert valid({"pattern": pattern}, text), text


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "(?<!a)b", r"(a)\1", r"\p{L}", "[", "(", "a)", "[]", "*a", "[z-a]", "\\", r"\u00g0", r"\u0", r"\x 1"],
)
def test_what_is_not_read_of_a_pattern_is_said(pattern: str) -> None:
    with pytest.raises(patterns.UnreadableError):
        patterns.make_text(pattern, random.Random(0))


@given(st.text(alphabet="ab0\\^$.|?*+()[]{},-:<>=!dwsu", max_size=12), st.integers(0, 3))
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 200, 500, 500))
def test_any_text_for_a_pattern(pattern: str, seed: int) -> None:
    with contextlib.suppress(patterns.UnreadableError):
        assert isinstance(patterns.make_text(pattern, random.Random(seed)), str)


TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "minItems": 0},
            },
            "required": ["left", "children"],
        }
    },
}


OLD = {"$schema": "http://json-schema.org/draft-07/schema#"}


@pytest.mark.parametrize(
    "schema",
    amounts.sample(
        [
            True,
            {},
            {"type": "null"},
            {"type": ["string", "null"], "minLength": 30, "maxLength": 31},
            {"type": "string", "maxLength": 2},
            {"type": "string", "pattern": "^[A-Z]+$", "minLength": 3, "maxLength": 6},
            {"type": "integer", "minimum": 7, "maximum": 7},
            {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
            {"type": "integer", "multipleOf": 2.5, "minimum": 1},
            {"type": "integer", "maximum": -(2**60)},
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
            {"type": "number", "multipleOf": 0.25, "minimum": 0.1, "maximum": 0.3},
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "minimum": 1,
                "exclusiveMinimum": True,
                "maximum": 2,
            },
            {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
            {"type": "array", "prefixItems": [{"const": "a"}, {"type": "integer"}], "items": False, "minItems": 2},
            {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 50}, "minContains": 2},
            {"type": "array", "maxItems": 0, "items": {"type": "string"}},
            {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
            {"type": "object", "required": ["x-1"], "patternProperties": {"^x-": {"const": 5}}},
            {"type": "object", "minProperties": 2, "propertyNames": {"pattern": "^k[0-9]$"}},
            {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 1, "required": ["c"]},
            {"properties": {"a": True, "never": False}, "required": ["a"], "dependentRequired": {"a": ["b"]}},
            {
                "allOf": [
                    {"properties": {"a": {"minimum": 3}}},
                    {"properties": {"a": {"maximum": 4}}, "required": ["a"]},
                ]
            },
            {"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "minLength": 2}]},
            {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}},
            {
                "if": {"properties": {"k": {"const": 1}}},
                "then": {"required": ["v"]},
                "properties": {"k": {"enum": [1, 2]}},
            },
            {"not": {"type": "string"}, "type": ["string", "integer"]},
            {"not": {"type": ["string", "null"]}},
            {**OLD, "$ref": "#/definitions/a", "type": "integer", "definitions": {"a": {"type": "string"}}},
            {"type": ["number", "string"], "allOf": [{"type": ["integer", "null"]}]},
            {"enum": [3, "x"], "examples": ["not allowed"], "default": None},
            TREE,
            {"$dynamicRef": "#it", "$defs": {"it": {"$dynamicAnchor": "it", "type": "boolean"}}},
            *({"type": "string", "format": form} for form in FORMATS),
        ],
        18,
    ),
)
def test_values_are_valid_by_their_schema(schema: Any) -> None:
    made = [instances.make(schema, str(seed), formats=True) for seed in range(20)]
    assert all(valid(schema, value) for value in made)
    assert made == [instances.make(schema, str(seed), formats=True) for seed in range(20)]


def test_what_the_schema_suggests_is_taken() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"examples": ["shown"]},
            "b": {"default": 7},
            "c": {"type": "string"},
            "d": {"const": None},
        },
    }
    made = instances.make(schema, "0")
    assert {**made, "c": ""} == {"a": "shown", "b": 7, "c": "", "d": None}
    assert len({json.dumps(instances.make(schema, str(seed))) for seed in range(30)}) > 5


TOO_COMPLEX = {  # for the validator, which refuses every value
    "$ref": "#/$defs/L0",
    "$defs": {f"L{n}": {"allOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 2} for n in range(18)} | {"L18": {"type": "string"}},
}


@pytest.mark.parametrize("schema", [False, {"enum": []}, {"minimum": 2, "maximum": 1, "type": "number"}, TOO_COMPLEX])
def test_what_cannot_be_made(schema: Any) -> None:
    with pytest.raises(instances.UnsatisfiableError):
        instances.make(schema, "0")


def nested(levels: int, inner: Any, outer: Callable[[Any], Any]) -> Any:
    for _ in range(levels):
        inner = outer(inner)
    return inner


TEXT = {"type": "string"}
LARGE: list[Any] = [
    {"type": "array", "minItems": 10**9},
    {"type": "array", "minItems": 10**9, "items": TEXT},
    {"type": "array", "minItems": 10**9, "uniqueItems": True, "items": {"type": "integer"}},
    {"type": "array", "minItems": 10_000, "uniqueItems": True, "items": {"type": "integer", "maximum": 10**9}},
    {"type": "array", "contains": TEXT, "minContains": 10**9},
    {"type": "string", "minLength": 10**10},
    {"type": "string", "minLength": 10**10, "pattern": "^a+$"},
    {"type": "object", "minProperties": 10**9},
    {"type": "object", "minProperties": 10**9, "propertyNames": {"enum": ["a"]}},
    {"type": "object", "minProperties": 10**9, "patternProperties": {"^a": TEXT}},
    nested(4, TEXT, lambda inner: {"type": "array", "minItems": 1000, "items": inner}),
    nested(4, TEXT, lambda inner: {"type": "object", "minProperties": 1000, "additionalProperties": inner}),
    nested(3, {"type": "string", "minLength": 10_000}, lambda inner: {"type": "array", "minItems": 90, "items": inner}),
    {
        "$ref": "#/$defs/L0",
        "$defs": {
            f"L{n}": {
                "type": "object",
                "properties": {p: {"$ref": f"#/$defs/L{n + 1}"} for p in "ab"},
                "required": ["a", "b"],
            }
            for n in range(30)
        }
        | {"L30": TEXT},
    },
]
PATTERNS = [
    nested(4, "a", lambda inner: f"({inner}){{1000}}"),
    nested(4, "", lambda inner: f"({inner}){{1000}}"),
    nested(40, "a", lambda inner: f"({inner})*"),
    nested(40, "a", lambda inner: f"({inner}|{inner[:50]}){{2,}}"[:4000]),
    "a{999999999}",
    f"a{{{'9' * 5000}}}",
    "(a{1000}){1000}",
    "[\\u0000-\\uffff]" * 500,
    "(" * 5000 + "a" + ")" * 5000,
]


@pytest.mark.parametrize(
    "schema",
    [*amounts.sample(LARGE, 5), *amounts.sample(({"type": "string", "pattern": pattern} for pattern in PATTERNS), 3)],
)
def test_what_is_too_large_is_told_and_not_made(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = Search._spend

    def counted(search: Search) -> None:
        taken.append(1)
        take(search)

    monkeypatch.setattr(Search, "_spend", counted)
    try:
        Validator(schema)
    except Exception as error:  # noqa: BLE001 - the validator's own limit, whatever its class
        pytest.skip(f"no server can have it: {error}")
    if schema in LARGE:
        with pytest.raises(instances.UnsatisfiableError, match="it requires more than"):
            instances.make(schema, "seed")
    else:  # any text may fit
        with contextlib.suppress(instances.UnsatisfiableError):
            assert valid(schema, instances.make(schema, "seed"))
    assert len(taken) <= 10 * instances.MOST


@pytest.mark.parametrize("bound", ["minimum", "maximum", "exclusiveMinimum", "multipleOf"])
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_numbers_of_any_size(bound: str, kind: str) -> None:
    for value in (10**400, 1e308, 5e-324):
        schema = {"type": kind, bound: value}
        try:
            assert valid(schema, instances.make(schema, "seed"))
        except instances.UnsatisfiableError:
            assert kind == "number"
            assert value != 1e308 or bound != "maximum"


@pytest.mark.long
def test_what_is_large_but_not_too_large_is_made() -> None:
    for schema in (
        {"type": "array", "minItems": 5000, "items": TEXT},
        {"type": "array", "minItems": 500, "uniqueItems": True, "items": {"type": "integer", "maximum": 10**6}},
        {"type": "object", "minProperties": 2000},
        {"type": "string", "minLength": 500_000},
        {"$ref": "#"},
        {"$defs": {"L": {"$ref": "#/$defs/L"}}, "$ref": "#/$defs/L"},
        {"type": "string", "pattern": "^(a{1000}){5}$"},
    ):
        assert valid(schema, instances.make(schema, "seed"))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_results_of_public_servers_can_be_made(shard: int, corpus: Path) -> None:
    for path in real.files(corpus, shard):
        for one in real.imported(path).manifest["tools"]:
            if "outputSchema" in one:
                made = instances.make(one["outputSchema"], "0")
                assert not Validator(one["outputSchema"]).find_errors(made), f"{path.stem}: {one['name']}"


# The server


OUTPUT = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "word": {"type": "string"}},
    "required": ["n", "word"],
}
READ = {"annotations": {"readOnlyHint": True}, "outputSchema": OUTPUT}


def everything() -> dict[str, Any]:
    """Return a manifest with all features that a mock must provide."""
    examples = [
        {"input": {"n": 0}},
        {"input": {"n": 1}, "output": {"n": 10, "word": "one"}},
        {"input": {"n": 2}, "output": {"n": 20, "word": "two"}},
    ]
    number = {"n": {"type": "number"}}
    confirmed = {"policy": {"confirm": True, "scopes": ["a"], "timeout": "1s"}, "examples": examples}
    return manifest(
        [
            tool("shown", number, outputSchema=OUTPUT, stubwright=confirmed),
            tool("made", number, outputSchema=OUTPUT),
            tool("plain"),
            tool("impossible", outputSchema={"type": "object", "properties": {"a": False}, "required": ["a"]}),
            tool("list", outputSchema={"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        ],
        resources=[{"uri": "x:own", "name": "own"}, {"uri": "x:text", "name": "text", "stubwright": {"text": "Text."}}],
        resourceTemplates=[
            {"uriTemplate": "y://{city}", "name": "city", "stubwright": {"complete": {"city": "handler"}}},
            {"uriTemplate": "j://{id}", "name": "data", "mimeType": "application/json"},
        ],
        prompts=[
            {"name": "own", "arguments": [{"name": "a"}]},
            {"name": "written", "stubwright": {"messages": [{"role": "user", "text": "Hello."}]}},
        ],
        policy={"rateLimit": "1/hour"},
        emit=["client"],
        python={"package": "json_mcp"},
    )


def calls(target: Any, wanted: Sequence[tuple[str, dict[str, Any]]], **more: Any) -> list[Any]:
    """The results of tools, one after the other."""

    async def go() -> list[Any]:
        async with mcp.Client(target, **more) as client:
            return [await client.call_tool(name, arguments) for name, arguments in wanted]

    return asyncio.run(go())


def stdio(folder: Path, *argv: str) -> Any:
    """The transport of a mock that is started in `folder`."""
    command = [*forked.interpreter(), "-m", "stubwright", "mock", "manifest.json", *argv]
    environment = {"TMPDIR": str(folder / "tmp")}
    return stdio_client(mcp.StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manifest.json").write_text(json.dumps(everything()))
    (tmp_path / "tmp").mkdir()
    return tmp_path


def test_tools_answer_with_examples_and_schemas(folder: Path) -> None:
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("shown", {"n": 2.0}),
        ("shown", {"n": 5}),
        ("made", {"n": 1}),
        ("made", {"n": 1}),
        ("made", {"n": 2}),
        ("plain", {}),
        ("impossible", {}),
        ("list", {}),
        ("made", {"n": "one"}),
    ]
    answers = calls(stdio(folder), wanted)
    two, first, made, again, other, plain, impossible, listed, wrong = answers
    assert two.structured_content == {"n": 20, "word": "two"}
    assert first.structured_content == {"n": 10, "word": "one"}
    assert made.structured_content == again.structured_content != other.structured_content
    assert valid(OUTPUT, made.structured_content)
    assert plain.content[0].text == "This is a mock: plain has no outputSchema, so no response can be generated."
    assert impossible.is_error
    assert "give the tool an example with an output" in impossible.content[0].text
    assert all(isinstance(one, int) for one in listed.structured_content)
    assert wrong.is_error
    assert "n: expected a number" in wrong.content[0].text
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "tmp"]
    assert list((folder / "tmp").iterdir()) == []
    seeded = [calls(stdio(folder, "--seed", seed), [("made", {"n": 1})])[0] for seed in ("0", "1")]
    assert seeded[0].structured_content == made.structured_content != seeded[1].structured_content


def test_all_else_has_a_placeholder(folder: Path) -> None:
    async def go() -> None:
        async with mcp.Client(stdio(folder), mode="legacy") as client:
            assert client.protocol_version == "2025-11-25"
            assert [one.name for one in (await client.list_tools()).tools][:2] == ["shown", "made"]
            texts = [(await client.read_resource(uri)).contents[0] for uri in ("x:own", "x:text", "y://Oslo")]
            assert [getattr(text, "text", "") for text in texts] == [
                "This is a mock: the handlers' read_own produces the real text.",
                "Text.",
                'This is a mock: the handlers\' read_city produces the real text with {"city": "Oslo"}.',
            ]
            [data] = (await client.read_resource("j://7")).contents
            assert getattr(data, "mime_type", "") == "application/json"
            assert json.loads(getattr(data, "text", ""))["mock"].endswith(
                'read_data produces the real text with {"id": "7"}.'
            )
            own, written = [await client.get_prompt(*one) for one in (("own", {"a": "b"}), ("written", None))]
            assert getattr(own.messages[0].content, "text", "").endswith(
                'prompt_own produces the real text with {"a": "b"}.'
            )
            assert getattr(written.messages[0].content, "text", "") == "Hello."
            from mcp_types import ResourceTemplateReference

            completed = await client.complete(
                ResourceTemplateReference(uri="y://{city}"), {"name": "city", "value": ""}
            )
            assert completed.completion.values == []

    asyncio.run(go())


@contextlib.contextmanager
def http(folder: Path, *argv: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A mock over HTTP, and its URL."""
    with start_process(
        [*forked.interpreter(), "-m", "stubwright", "mock", "manifest.json", "--http", "127.0.0.1:0", *argv],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            said = ""
            while "startup complete" not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            found = re.search(r"serving (http://\S+)", said)
            assert found is not None
            yield process, found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def test_over_http(folder: Path) -> None:
    with http(folder) as (_, url):
        answers = calls(url, [("shown", {"n": 1}), ("shown", {"n": 1})])
        assert [answer.structured_content["word"] for answer in answers] == ["one", "one"]


@pytest.mark.long
@pytest.mark.parametrize("number", amounts.sample([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], 1))
def test_a_signal_stops_cleanly(number: signal.Signals, folder: Path) -> None:
    with http(folder) as (process, _):
        process.send_signal(number)
        assert process.wait(20) == 0
        assert list((folder / "tmp").iterdir()) == []


@pytest.mark.long
def test_a_signal_before_the_server_runs(folder: Path) -> None:
    with start_process(
        [sys.executable, "-m", "stubwright", "mock", "manifest.json"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while not list((folder / "tmp").iterdir()):
            assert process.poll() is None
            time.sleep(0.01)
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert b"Traceback" not in said
    assert list((folder / "tmp").iterdir()) == []


def test_the_command_line(folder: Path) -> None:
    assert stubwright("mock", cwd=folder).returncode == 2
    wrong = stubwright("mock", "manifest.json", "--http", "here", cwd=folder)
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "stubwright: --http is 'here'; expected HOST:PORT, such as 127.0.0.1:8000\n",
    )
    assert stubwright("mock", "manifest.json", "--http", "127.0.0.1:65536", cwd=folder).returncode == 2
    (folder / "bad.json").write_text(json.dumps(manifest([{**tool("a"), "inputSchema": 3}])))
    bad = stubwright("mock", "bad.json", cwd=folder)
    assert bad.returncode == 1
    assert "error[SW102]" in bad.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = stubwright("mock", "manifest.json", "--http", address, cwd=folder)
    assert done.returncode == 1
    assert f"json_mcp_mock: cannot listen on {address}" in done.stderr


@pytest.mark.long
def test_the_weather_server_is_mocked(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "tmp").mkdir()
    command = [*forked.interpreter(), "-m", "stubwright", "mock", WEATHER]
    target = stdio_client(mcp.StdioServerParameters(command=command[0], args=command[1:]))
    [paris, forecast] = calls(target, [("get_weather", {"location": "Rome"}), ("get_forecast", {"location": "Oslo"})])
    assert paris.structured_content == {"temperature": 22.5, "conditions": "Partly cloudy", "humidity": 65}
    assert forecast.structured_content["days"]


def test_the_client_of_a_toolset_starts_a_mock(tmp_path: Path) -> None:
    value = manifest([tool("find"), tool("delete")], toolsets={"reading": {"tools": ["find"]}})
    command = [*forked.interpreter(), "-m", "stubwright", "mock", "sample.json"]

    async def use(connect: Callable[..., Any]) -> list[str]:
        async with connect(command, cwd=tmp_path) as client:
            assert not (await client.with_raw_response.find()).is_error
            return [listed.name for listed in (await client.raw.list_tools()).tools]

    with imported(tmp_path, generate(tmp_path, value)) as package:
        assert asyncio.run(use(package.SampleReadingClient.connect)) == ["find"]


def test_a_mock_has_one_page_of_everything(tmp_path: Path) -> None:
    """Otherwise a client that follows the pages would never end."""
    shutil.copy(ROOT / "tests" / "cases" / "package-of-pages" / "manifest.yaml", tmp_path)
    command = [*forked.interpreter(), "-m", "stubwright", "mock", str(tmp_path / "manifest.yaml")]
    target = stdio_client(mcp.StdioServerParameters(command=command[0], args=command[1:]))
    first, loans, again = calls(
        target, [("list_books", {}), ("list_loans", {"reader": "r"}), ("list_books", {"cursor": "x"})]
    )
    assert first.structured_content == {"books": [{"title": "Emma"}], "total": 1}
    assert list(loans.structured_content) == ["loan-ids"]
    assert again.is_error
    assert "Start again without `cursor`" in again.content[0].text


@pytest.mark.long
def test_a_mock_of_an_api_has_one_page_of_everything(tmp_path: Path) -> None:
    page = {"by": "cursor", "argument": "after", "items": "/data", "next": "/next"}
    listed = {"type": "array", "items": {"type": "string"}}
    output = {"type": "object", "properties": {"data": listed, "next": {"type": "string"}}}
    http = {"url": "https://pets.example/pets", "query": {"after": "{after}"}, "page": page}
    value = manifest([tool("pets", {"after": {"type": "string"}}, outputSchema=output, stubwright={"http": http})])
    (tmp_path / "manifest.json").write_text(json.dumps(value))
    with imported(tmp_path, generate(tmp_path, value)) as package:
        command = [*forked.interpreter(), "-m", "stubwright", "mock", str(tmp_path / "manifest.json")]

        async def go() -> tuple[Any, list[str]]:
            async with package.SampleClient.connect(command) as client:
                page = await client.pets()
                return page, [pet async for pet in client.pets.pages()]

        first, pets = asyncio.run(go())
    assert pets == list(first.items)
    assert pets


def test_a_schema_that_an_api_need_not_keep_is_not_listed(tmp_path: Path) -> None:
    http = {"url": "https://pets.example/pets", "output": "lenient"}
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [
        tool("lenient", {}, outputSchema=output, stubwright={"http": http}),
        tool("strict", {}, outputSchema=output),
    ]
    (tmp_path / names.MANIFEST).write_text(json.dumps(manifest(tools)))
    (tmp_path / names.OPTIONS).write_text('{"seed": 0}')
    package, _ = mock_package.load("sample_mock", tmp_path)
    assert [name for name, each in package.tools.items() if "outputSchema" in each.listed] == ["strict"]
    assert "outputSchema" in package.tools["lenient"].definition, "by which answers are made"


def test_a_mock_takes_the_arguments_that_its_server_takes(tmp_path: Path) -> None:
    url = "https://pets.example/pets"
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    number = {"n": {"type": "integer"}}
    tools = [
        tool("lenient", number, outputSchema=output, stubwright={"http": {"url": url, "input": "lenient"}}),
        tool("strict", number, outputSchema=output, stubwright={"http": {"url": url}}),
    ]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest(tools)))
    (tmp_path / "tmp").mkdir()
    taken, refused = calls(stdio(tmp_path), [("lenient", {"n": "five"}), ("strict", {"n": "five"})])
    assert valid(output, taken.structured_content)
    assert refused.is_error


@pytest.mark.long
def test_tools_with_contexts_of_their_own_are_mocked(tmp_path: Path) -> None:
    """They ask their callers, or return pages: a mock does not ask, and returns one page."""
    output = {"type": "object", "properties": {"books": {"type": "array", "items": {"type": "string"}}}}
    form = {"properties": {"name": {"type": "string"}}, "type": "object"}
    tools = [
        tool("list_books", {}, outputSchema=output, stubwright={"paginate": {"items": "books", "size": 2}}),
        tool("greet", {}, outputSchema=output, stubwright={"ask": {"who": {"message": "Who?", "schema": form}}}),
    ]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest(tools)))
    (tmp_path / "tmp").mkdir()
    for answer in calls(stdio(tmp_path), [("list_books", {}), ("greet", {})]):
        assert not answer.is_error, answer
        assert valid(output, answer.structured_content)
        assert "nextCursor" not in answer.structured_content
