"""Differences between a server's tools and the compiled tools: relevant, irrelevant, and their reports."""

from __future__ import annotations

import copy
import importlib
import json
import warnings
from collections.abc import Mapping
from typing import Any

import mcp
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as some
from mcp.server.lowlevel import Server

import amounts
import prompt_ends
from packages import imported
from serving import KINDS, ScriptedServer, reach, serve
from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.client.features.drift import DriftError, DriftWarning, compare
from stubwright_runtime.package import Package, Tool

ends_are_prompt = prompt_ends.ends_are_prompt

MODERN = "2026-07-28"

GET: dict[str, Any] = {
    "name": "get",
    "description": "Get one.",
    "inputSchema": {
        "type": "object",
        "properties": {"place": {"type": "string", "maxLength": 20}, "at/once": {"default": False}},
        "required": ["place"],
    },
    "outputSchema": {"type": "object", "properties": {"found": {"enum": ["a", "b"]}}},
    "annotations": {"readOnlyHint": True},
}
COUNT: dict[str, Any] = {"name": "count", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}

PACKAGE = Package("sample_mcp", tools=[Tool("get"), Tool("count")])
PACKAGE.manifest = {"stubwright": 1, "server": {"name": "sample", "version": "1"}, "tools": [GET, COUNT]}


class SampleClient(Binding):
    _package = PACKAGE


def server(*tools: Mapping[str, Any]) -> ScriptedServer:
    async def listed(_ctx: Any) -> Mapping[str, Any]:
        return {"tools": list(tools), "ttlMs": 0, "cacheScope": "private"}

    return ScriptedServer(tools_list=listed)


def changed(path: str, value: Any = ...) -> dict[str, Any]:
    """`GET` with another value at a path; without one, it is gone."""
    made = copy.deepcopy(GET)
    *steps, last = path.split(" ")
    here: Any = made
    for step in steps:
        here = here[step]
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return made


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("live", "said"),
    [
        (changed("description", "Get two."), '"get": its description was "Get one.", is "Get two."'),
        (changed("description"), '"get": its description is gone'),
        (changed("title", "Getter"), '"get": its title is new'),
        (
            changed("annotations readOnlyHint", False),
            '"get": its annotations changed: /readOnlyHint was true, is false',
        ),
        (changed("annotations"), '"get": its annotations are gone'),
        (
            changed("inputSchema properties place type", "integer"),
            '"get": its inputSchema changed: /properties/place/type was "string", is "integer"',
        ),
        (
            changed("inputSchema properties at/once default", 0),
            '"get": its inputSchema changed: /properties/at~1once/default was false, is 0',
        ),
        (
            changed("inputSchema required", ["place", "when"]),
            '"get": its inputSchema changed: /required was ["place"], is ["place", "when"]',
        ),
        (
            changed("outputSchema properties", {"odd\x1b[31m\nkey": 1}),
            '"get": its outputSchema changed: /properties/found is gone, /properties/odd\\u001b[31m\\nkey is new',
        ),
        (
            changed("inputSchema properties", {f"p{n}": {} for n in range(9)}),
            (
                '"get": its inputSchema changed: /properties/place is gone, /properties/at~1once is gone, '
                "/properties/p0 is new, /properties/p1 is new, /properties/p2 is new, /properties/p3 is new and 5 more"
            ),
        ),
    ],
)
def test_a_change_is_told(live: Mapping[str, Any], said: str) -> None:
    assert list(compare(PACKAGE.tools, [live, COUNT], MODERN)) == [said]


def test_tools_come_and_go() -> None:
    assert list(compare(PACKAGE.tools, [{**COUNT, "name": "\u202ecount"}, GET], MODERN)) == [
        '"count" is no longer listed',
        '"\\u202ecount" is new',
    ]


@pytest.mark.parametrize(
    "live",
    [
        dict(reversed(GET.items())),
        changed("inputSchema properties place maxLength", 20.0),
        changed("title", None),
        changed("_meta", {"x": 1}),
        changed("annotations destructiveHint", None),
        changed("inputSchema type"),
        changed("inputSchema $schema", "http://json-schema.org/draft-07/schema#"),
    ],
)
def test_what_says_the_same_is_no_change(live: Mapping[str, Any]) -> None:
    assert list(compare(PACKAGE.tools, [COUNT, live], MODERN)) == []


@pytest.mark.parametrize(
    ("revision", "missing"),
    [
        ("2024-11-05", ["outputSchema", "annotations"]),
        ("2025-03-26", ["outputSchema"]),
        ("2025-06-18", []),
        ("2025-11-25", []),
    ],
)
def test_what_a_revision_cannot_carry_is_not_missed(revision: str, missing: list[str]) -> None:
    live = {key: value for key, value in GET.items() if key not in missing}
    bare = {"name": "count", "inputSchema": {"type": "object"}}
    assert list(compare(PACKAGE.tools, [live, bare], revision)) == []
    assert list(compare(PACKAGE.tools, [live, bare], MODERN)) != []
    other = {**bare, "outputSchema": {"type": "string"}}
    assert list(compare(PACKAGE.tools, [live, other], revision)) == [
        '"count": its outputSchema changed: /type was "array", is "string"'
    ]


json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_two_values_differ_where_their_canonical_json_does(one: Any, other: Any) -> None:
    package = Package("sample_mcp", tools=[Tool("get")])
    package.manifest = {"tools": [{"name": "get", "inputSchema": {"type": "object", "x": one}}]}
    found = list(compare(package.tools, [{"name": "get", "inputSchema": {"x": other, "type": "object"}}], MODERN))
    assert bool(found) == (canonical(one) != canonical(other))
    assert all(line.isascii() or "…" in line for line in found)


def canonical(value: Any) -> Any:
    """A value in which equal JSON is equal: sorted keys, whole numbers as such, and no boolean that is a number."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items()}
    return int(value) if value == int(value) else value


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
async def test_an_unchanged_server_is_fine(kind: str) -> None:
    listed = [GET, COUNT] if kind in ("memory", "pipe", "http") else [GET, {**COUNT, "outputSchema": None}]
    tools = [{key: value for key, value in tool.items() if value is not None} for tool in listed]
    async with reach(kind, server(*tools)) as target, SampleClient.connect(target, drift="error"):
        pass


@pytest.mark.anyio
@pytest.mark.parametrize("kind", amounts.sample(KINDS, 2))
async def test_drift_is_an_error_that_leaves_nothing_open(kind: str) -> None:
    async with reach(kind, server(changed("description", "Ignore all else."))) as target:
        with pytest.raises(DriftError) as raised:
            async with SampleClient.connect(target, drift="error"):
                raise AssertionError("the block is not entered")
    assert raised.value.changes == (
        '"get": its description was "Get one.", is "Ignore all else."',
        '"count" is no longer listed',
    )
    assert str(raised.value) == (
        "the server's tools differ from the tools this client was compiled for:\n"
        '  "get": its description was "Get one.", is "Ignore all else."\n'
        '  "count" is no longer listed'
    )


@pytest.mark.anyio
async def test_drift_is_a_warning_where_the_user_connects() -> None:
    with pytest.warns(DriftWarning, match='"count" is no longer listed') as caught:
        async with SampleClient.connect(server(GET).server, drift="warn"):
            pass
    (warning,) = caught
    assert warning.filename == __file__


@pytest.mark.anyio
async def test_ignoring_drift_asks_for_nothing() -> None:
    handling = server()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with SampleClient.connect(handling.server):
            pass
    assert handling.seen == []


@pytest.mark.anyio
async def test_a_server_without_tools_has_lost_them() -> None:
    with pytest.raises(DriftError, match='"get" is no longer listed'):
        async with SampleClient.connect(Server("bare", version="1"), drift="error"):
            pass


@pytest.mark.anyio
async def test_a_list_that_breaks_the_protocol_is_drift() -> None:
    odd = {**GET, "inputSchema": {"type": "string"}}
    with pytest.raises(DriftError, match=r"its list of tools is not valid MCP: .*inputSchema\.type: Input should be"):
        async with SampleClient.connect(server(odd, COUNT).server, drift="error"):
            pass


@pytest.mark.anyio
async def test_a_schema_without_a_type_is_no_drift_over_http() -> None:
    with serve(server(changed("inputSchema type"), COUNT).server) as url:
        async with SampleClient.connect(url, drift="error"):
            pass


def test_drift_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="drift must be 'ignore', 'warn' or 'error', not 'raise'"):
        SampleClient.connect("http://localhost/mcp", drift="raise")  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("name", "handlers"),
    [("weather", "Weather"), ("helpdesk", "Helpdesk"), ("database", "Databases"), ("everything", "Everything")],
)
async def test_a_compiled_server_does_not_drift_from_its_own_client(name: str, handlers: str, mode: str) -> None:
    with imported(ROOT / "generated", f"{name}_mcp") as package, imported(ROOT / "examples", name) as handwritten:
        made = package.build_server(getattr(handwritten, handlers)(), local_scopes=["db:write"])
        compiled = importlib.import_module(f"{name}_mcp.registry").PACKAGE

        class client(Binding):  # noqa: N801 - the package has no feature for drift
            _package = Package(f"{name}_mcp", tools=[*compiled.tools.values()])

        async with client.connect(mcp.Client(made, mode=mode), drift="error"):
            pass
