"""An `outputSchema` with `type: object` only in a reference or in its alternatives, in every revision."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING, Any

import mcp
import pytest
from jsonschema_rs import validator_for

import amounts
import forked
import prompt_ends
from packages import check, generate, imported, manifest, tool
from server_fixture import exchange
from serving import asgi
from stubwright_runtime.mcp.downgrades import downgrade_tool
from stubwright_runtime.mcp.revisions import Revision
from stubwright_runtime.schema.objects import as_objects, describes_objects
from stubwright_runtime.server.transports.http.asgi import asgi_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
OLD, NEW = Revision.from_date("2025-11-25"), Revision.from_date("2026-07-28")
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
TICKET = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SCHEMAS = {"Ticket": TICKET, "Same": {"$ref": "#/schemas/Ticket"}, "Note": NOTE, "Ids": {"type": "array"}}
OUTPUTS: dict[str, dict[str, Any]] = {
    "get": {"$ref": "#/schemas/Ticket"},
    "chain": {"$ref": "#/schemas/Same", "description": "A ticket."},
    "either": {"oneOf": [{"$ref": "#/schemas/Ticket"}, {"$ref": "#/schemas/Note"}]},
    "old": {"$schema": DRAFT_7, "$ref": "#/definitions/T", "definitions": {"T": TICKET}},
    "ids": {"$ref": "#/schemas/Ids"},
}
VALUES: dict[str, Any] = {"get": {"id": 1}, "chain": {"id": 2}, "either": {"text": "t"}, "old": {"id": 4}, "ids": [5]}
HANDLERS = f"""
class Desk:
    pass

def answering(value):
    return lambda self, args, ctx: value

for name, value in {VALUES!r}.items():
    setattr(Desk, name, answering(value))
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    tools = [tool(name, outputSchema=schema) for name, schema in OUTPUTS.items()]
    generate(folder, manifest(tools, name="desk", schemas=SCHEMAS, wire={"refs": "bundled"}))
    (folder / "desk.py").write_text(HANDLERS)
    return folder


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[Any]:
    with imported(folder, "desk_mcp"):
        server = importlib.import_module("desk_mcp.server")
        yield server.build_server(importlib.import_module("desk").Desk())
        del sys.modules["desk"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_older_revisions_keep_what_leads_to_an_object(desk: Any, revision: str) -> None:
    calls = [("tools/call", {"name": name, "arguments": {}}) for name in OUTPUTS]
    listed, *results = await exchange(desk, revision, ("tools/list", {}), *calls)
    sent = {one["name"]: one.get("outputSchema") for one in listed["tools"]}
    given = {name: result.get("structuredContent") for name, result in zip(OUTPUTS, results, strict=True)}
    texts = {name: json.loads(result["content"][0]["text"]) for name, result in zip(OUTPUTS, results, strict=True)}
    assert texts == VALUES
    if revision == "2026-07-28":
        assert given == VALUES
        assert [*sent["chain"]] == ["$ref", "description", "$defs"]
        return
    assert given == {**VALUES, "ids": None}
    assert sent["ids"] is None
    assert [*sent["chain"]] == ["type", "$ref", "description", "$defs"]
    assert {name: schema["type"] for name, schema in sent.items() if schema} == dict.fromkeys([*VALUES][:-1], "object")
    for name in [*VALUES][:-1]:
        assert validator_for(sent[name]).is_valid(VALUES[name])
        assert not validator_for(sent[name]).is_valid({})


@pytest.mark.parametrize("mode", amounts.sample(["legacy", "auto"], 1))
@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_clients_get_structured_results(folder: Path, desk: Any, kind: str, mode: Any) -> None:
    last = None if mode == "legacy" else [5]

    async def ask(target: Any) -> None:
        async with mcp.Client(target, mode=mode) as client:
            assert {one.name for one in (await client.list_tools()).tools} == {*OUTPUTS}
            for name, value in {**VALUES, "ids": last}.items():
                assert (await client.call_tool(name, {})).structured_content == value

    async def ask_typed(target: Any) -> None:
        binding = importlib.import_module("desk_mcp.client").DeskClient
        async with binding.connect(target, drift="error") as client:
            assert (await client.get()).id == 1
            assert (await client.ids()).root == [5]

    if kind == "http":
        with asgi(asgi_app(desk.core)) as root:
            url = f"{root}/mcp"
            await ask(url)
            await ask_typed(mcp.Client(url, mode=mode))
    else:
        start = [*forked.interpreter(), "-m", "desk_mcp", "--handlers", "desk:Desk"]
        command = mcp.StdioServerParameters(command=start[0], args=start[1:], cwd=folder)
        await ask(command)
        await ask_typed(mcp.Client(command, mode=mode))


REFERRED = {"A": {"$ref": "#/$defs/B"}, "B": TICKET, "C": {"$ref": "#/$defs/C"}, "a/b": TICKET}
CERTAIN: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": ["object"]},
    {"$ref": "#/$defs/A", "$defs": REFERRED},
    {"$ref": "#/$defs/a~1b", "$defs": REFERRED},
    {"$ref": "#/$defs/%41", "$defs": REFERRED},
    {"allOf": [{"minProperties": 1}, {"$ref": "#/$defs/A"}], "$defs": REFERRED},
    {"anyOf": [TICKET, {"$ref": "#/$defs/A"}], "$defs": REFERRED},
    {"oneOf": [TICKET, {"enum": [{"a": 1}, {}]}]},
    {"type": ["object", "null"], "allOf": [TICKET]},
    {"const": {}},
    {"$schema": DRAFT_7, "$ref": "#/definitions/T", "type": "string", "definitions": {"T": TICKET}},
]
UNCERTAIN: list[Any] = [
    True,
    {},
    {"properties": {"a": {}}},
    {"type": ["object", "null"]},
    {"type": "string", "allOf": [TICKET]},
    {"$ref": "#/$defs/C", "$defs": REFERRED},
    {"$ref": "#/$defs/none", "$defs": REFERRED},
    {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    {"anyOf": [TICKET, {"type": "null"}]},
    {"anyOf": []},
    {"enum": []},
    {"enum": [{}, None]},
    {"$ref": "#/$defs/A", "$defs": {"A": {"$id": "a:b", "$ref": "#/$defs/B"}, "B": TICKET}},
    {"$schema": DRAFT_7, "$ref": "#/definitions/T", "type": "object", "definitions": {"T": {}}, "x": 1},
]
INSTANCES: list[Any] = [None, True, 0, "", [], {}, {"id": 1}, {"id": "1"}, {"a": 1}]


@pytest.mark.parametrize("schema", CERTAIN)
async def test_what_is_certain(schema: dict[str, Any]) -> None:
    assert describes_objects(schema)
    sent = as_objects(schema)
    assert sent["type"] == "object"
    before, after = validator_for(schema), validator_for(sent)
    assert [before.is_valid(one) for one in INSTANCES] == [after.is_valid(one) for one in INSTANCES]
    assert downgrade_tool({"name": "a", "outputSchema": schema}, OLD) == {
        "name": "a",
        "outputSchema": sent,
    }


@pytest.mark.parametrize("schema", UNCERTAIN[:-1])
async def test_what_is_not_certain(schema: Any) -> None:
    assert not describes_objects(schema)
    assert as_objects(schema) is schema
    assert downgrade_tool({"name": "a", "outputSchema": schema}, OLD) == {"name": "a"}
    assert downgrade_tool({"name": "a", "outputSchema": schema}, NEW) == {
        "name": "a",
        "outputSchema": schema,
    }


async def test_a_root_that_says_so_is_taken_at_its_word() -> None:
    assert as_objects(UNCERTAIN[-1]) is UNCERTAIN[-1]


async def test_a_long_chain_is_not_followed_to_its_end() -> None:
    chain = {f"A{number}": {"$ref": f"#/$defs/A{number + 1}"} for number in range(5_000)}
    assert not describes_objects({"$ref": "#/$defs/A0", "$defs": {**chain, "A5000": TICKET}})


def test_only_what_older_revisions_lose_is_a_warning(tmp_path: Path) -> None:
    tools = [tool(name, outputSchema=schema) for name, schema in OUTPUTS.items()]
    value = manifest(tools, schemas=SCHEMAS, protocol={"min": "2025-06-18"})
    (said,) = check(tmp_path, value)
    assert said.code == "SW340"
    assert said.message.startswith("an `outputSchema` that allows values other than objects is new in revision 2026")
    assert said.help is not None
    assert "only receive the result as JSON text" in said.help
