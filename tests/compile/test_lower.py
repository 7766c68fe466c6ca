"""Lowering: wire schemas, the package's schemas, and bundled references."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema_rs import validator_for

import amounts
import suite
from memory import load
from stubwright.compile import rules
from stubwright.compile.lower import lower
from stubwright.compile.resolve import resolve
from stubwright.ir import Example
from stubwright.jsonschema import dialects

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stubwright import ir

SERVER = {"name": "weather", "version": "1.0.0"}


def lowered(value: Mapping[str, Any], **more: Any) -> ir.Manifest:
    """Return the IR of a manifest; `more` are files that it includes or references."""
    texts = {f"specs/{path}": json.dumps(content) for path, content in more.items()}
    bundle = load("specs/m.json", **{"specs/m.json": json.dumps({"stubwright": 1, "server": SERVER, **value}), **texts})
    before = copy.deepcopy({path: document.value for path, document in bundle.documents.items()})
    assert [found for found in rules.check(resolve(bundle)) if found.severity == "error"] == []
    manifest = lower(resolve(bundle), "specs/m.json")
    assert {path: document.value for path, document in bundle.documents.items()} == before
    return manifest


def tool(name: str = "get", properties: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(properties or {})}
    return {"name": name, "description": "Gets.", "inputSchema": schema, **more}


def wire(properties: Mapping[str, Any], schemas: Mapping[str, Any], **more: Any) -> Any:
    """Return the wire input schema of a tool with these properties and shared schemas."""
    schema = {"type": "object", "properties": dict(properties), **more}
    return lowered({"schemas": schemas, "tools": [tool() | {"inputSchema": schema}]}).tools[0].input.wire


def test_a_manifest() -> None:
    manifest = lowered(
        {
            "server": SERVER | {"title": "Weather", "icons": []},
            "python": {"handlers": "weather:Weather"},
            "emit": ["client"],
            "formats": "assert",
            "tools": [tool()],
        }
    )
    assert (manifest.source, manifest.package, manifest.stem) == ("specs/m.json", "weather_mcp", "Weather")
    assert (manifest.handlers, manifest.emit) == ("weather:Weather", frozenset({"client"}))
    assert manifest.document == {
        "stubwright": 1,
        "server": SERVER | {"title": "Weather", "icons": []},
        "formats": "assert",
        "tools": [tool()],
    }


def test_what_a_manifest_leaves_out() -> None:
    manifest = lowered({})
    assert (manifest.handlers, manifest.emit) == (None, frozenset({"server", "client"}))
    assert manifest.document["formats"] == manifest.formats == "annotate"
    assert (manifest.tools, manifest.shared) == ((), ())


def test_the_name_of_the_package_and_the_shown_path_can_be_given() -> None:
    bundle = load("m.yaml", **{"m.yaml": "stubwright: 1\nserver: {name: a, version: '1'}\npython: {package: b}\n"})
    assert lower(resolve(bundle), "specs/m.yaml").package == "b"
    assert lower(resolve(bundle), "specs/m.yaml").source == "specs/m.yaml"


def test_a_tool_goes_on_the_wire_as_it_is_but_for_what_is_ours() -> None:
    written = {
        "_meta": None,
        "name": "get-weather",
        "future": {"b": 1, "a": None},
        "description": None,
        "outputSchema": None,
        "inputSchema": {
            "required": ["b"],
            "type": "object",
            "properties": {"b": {"x-ui": {"$ref": "no"}, "default": None}},
        },
        "stubwright": {"policy": {"timeout": "3s"}, "lint": {"ignore": ["SW310"]}},
        "annotations": None,
    }
    manifest = lowered({"tools": [written]})
    made = manifest.tools[0]
    expected = {key: value for key, value in written.items() if key != "stubwright"}
    assert json.dumps(made.definition) == json.dumps(expected)
    assert (made.description, made.output, made.annotations) == (None, None, {})
    assert manifest.document["tools"] == [expected | {"stubwright": {"policy": {"timeout": "3s"}}}]


def test_what_needs_no_change_is_not_copied() -> None:
    bundle = load("m.json", **{"m.json": json.dumps({"stubwright": 1, "server": SERVER, "tools": [tool()]})})
    assert (
        lower(resolve(bundle), "m.json").tools[0].input.wire
        is bundle.documents["m.json"].value["tools"][0]["inputSchema"]
    )


def test_fragments_come_in_order_with_their_prefixes() -> None:
    manifest = lowered(
        {
            "tools": [tool("first")],
            "include": [{"path": "a.json", "prefix": "a_"}, "saved.json", {"path": "a.json", "prefix": "again_"}],
        },
        **{
            "a.json": {"tools": [tool("x")], "include": [{"path": "b.json", "prefix": "b_"}]},
            "b.json": {"tools": [tool("y", stubwright={"deprecated": {"since": "1", "use": "z"}}), tool("z")]},
            "saved.json": {"tools": [tool("saved")], "nextCursor": None},
        },
    )
    names = ["first", "a_x", "a_b_y", "a_b_z", "saved", "again_x", "again_b_y", "again_b_z"]
    assert [made.name for made in manifest.tools] == names
    assert [made.definition["name"] for made in manifest.tools] == names
    assert manifest.tools[2].deprecated == {"since": "1", "use": "a_b_z"}
    assert manifest.document["tools"][6]["stubwright"] == {"deprecated": {"since": "1", "use": "again_b_z"}}


def test_overlays_add_to_what_tools_say() -> None:
    said = {"policy": {"timeout": "3s", "scopes": ["a"]}, "examples": [{"input": {}}]}
    manifest = lowered(
        {
            "include": [{"path": "a.json", "prefix": "a_"}],
            "overlay": {"tools": {"a_x": {"policy": {"confirm": True, "scopes": ["b"]}, "pythonName": "xx"}}},
        },
        **{
            "a.json": {
                "tools": [tool("x", stubwright=said)],
                "overlay": {"tools": {"x": {"pythonName": "inner", "policy": {"timeout": "9s"}}}},
            }
        },
    )
    made = manifest.tools[0]
    assert (made.names.method, made.names.stem) == ("xx", "Xx")
    assert manifest.document["tools"][0]["stubwright"] == {
        "policy": {"timeout": "9s", "scopes": ["b"], "confirm": True},
        "examples": [{"input": {}}],
        "pythonName": "xx",
    }
    assert "stubwright" not in made.definition


def test_examples_have_names_and_places() -> None:
    entries = [{"name": "plain", "input": {"a": 1}, "output": None}, {"input": {}}]
    made = lowered(
        {"tools": [tool(outputSchema={"type": ["object", "null"]}, stubwright={"examples": entries})]}
    ).tools[0]
    place = made.place / "stubwright" / "examples"
    assert made.examples == (
        Example("plain", {"a": 1}, None, True, place / 0),
        Example("example 2", {}, None, False, place / 1),
    )


def test_shared_schemas_are_bundled_with_all_that_they_refer_to() -> None:
    schemas = {
        "Place": {"type": "object", "properties": {"at": {"$ref": "#/schemas/Point"}}},
        "Point": {"$ref": "other.json#/schemas/Number"},
        "Unused": {"type": "null"},
    }
    manifest = lowered(
        {
            "wire": {"refs": "bundled"},
            "schemas": schemas,
            "tools": [tool(properties={"p": {"$ref": "#/schemas/Place"}})],
        },
        **{"other.json": {"schemas": {"Number": {"type": "number"}, "Unused": {}}}},
    )
    made = manifest.tools[0].input
    assert made.wire == {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/Place"}},
        "$defs": {
            "Place": {"type": "object", "properties": {"at": {"$ref": "#/$defs/Point"}}},
            "Point": {"$ref": "#/$defs/Number"},
            "Number": {"type": "number"},
        },
    }
    assert made.shared == {"#/$defs/Place": "Place", "#/$defs/Point": "Point", "#/$defs/Number": "Number"}
    assert [shared.name for shared in manifest.shared] == ["Place", "Point", "Unused", "Number"]
    assert manifest.tools[0].definition["inputSchema"] is made.wire


def test_a_shared_schema_that_leads_back_to_itself_is_its_own_root() -> None:
    manifest = lowered({"schemas": {"Node": {"properties": {"next": {"$ref": "#/schemas/Node"}}}}})
    assert manifest.shared[0].schema.wire == {"properties": {"next": {"$ref": "#"}}}
    assert manifest.shared[0].circle is None


def test_shared_schemas_that_lead_to_each_other_have_the_same_bundled() -> None:
    node = {"properties": {"next": {"$ref": "#/schemas/Node"}, "tree": {"$ref": "#/schemas/Tree"}}}
    tree = {"items": {"$ref": "#/schemas/Node"}}
    one, two, three = lowered({"schemas": {"Node": node, "Tree": tree, "Forest": {"$ref": "#/schemas/Tree"}}}).shared
    both: dict[str, Any] = {
        "Node": {"properties": {"next": {"$ref": "#/$defs/Node"}, "tree": {"$ref": "#/$defs/Tree"}}},
        "Tree": {"items": {"$ref": "#/$defs/Node"}},
    }
    assert one.schema.wire == {**both["Node"], "$defs": both}
    assert two.schema.wire["$defs"] is one.schema.wire["$defs"]
    assert one.schema.shared == {"#/$defs/Node": "Node", "#/$defs/Tree": "Tree"}
    assert (one.circle, two.circle, three.circle) == ("Node", "Node", None)


def test_references_inside_a_shared_schema_move_with_it() -> None:
    place = {
        "$schema": dialects.DRAFT_2020_12.uri,
        "properties": {"a": {"$ref": "#/$defs/a~1b"}, "b": {"$ref": "#here"}, "c": {"$ref": "#"}, "d": {"$ref": ""}},
        "$defs": {"a/b": {"$anchor": "here"}, "own": {"$id": "own.json", "$ref": "#/$defs/x", "$defs": {"x": {}}}},
    }
    assert wire({"p": {"$ref": "#/schemas/P q"}}, {"P q": place})["$defs"]["P q"] == {
        "properties": {
            "a": {"$ref": "#/$defs/P%20q/$defs/a~1b"},
            "b": {"$ref": "#here"},
            "c": {"$ref": "#/$defs/P%20q"},
            "d": {"$ref": "#/$defs/P%20q"},
        },
        "$defs": {"a/b": {"$anchor": "here"}, "own": {"$id": "own.json", "$ref": "#/$defs/x", "$defs": {"x": {}}}},
    }


def test_a_shared_schema_with_an_identifier_stays_as_it_is() -> None:
    place = {"$id": "https://example.com/p", "$schema": dialects.DRAFT_2020_12.uri, "items": {"$ref": "#"}}
    assert wire({"p": {"$ref": "#/schemas/P"}}, {"P": place})["$defs"] == {"P": place}


def test_a_name_that_is_taken_is_left_alone() -> None:
    properties = {"p": {"$ref": "#/schemas/P"}, "own": {"$ref": "#/$defs/P"}}
    shared = {"P": {"type": "string"}}
    made = wire(properties, shared, **{"$defs": {"P": {"type": "null"}}})
    assert made["properties"] == {"p": {"$ref": "#/$defs/shared_P"}, "own": {"$ref": "#/$defs/P"}}
    assert made["$defs"] == {"P": {"type": "null"}, "shared_P": {"type": "string"}}
    made = wire(properties, shared, **{"$defs": {"P": {"type": "null"}, "shared_P": {}}})
    digest = hashlib.sha256(b"m.json#P#0").hexdigest()[:8]
    assert made["properties"]["p"] == {"$ref": f"#/$defs/P_{digest}"}
    made = wire(properties, shared, **{"$defs": {"P": {"type": "null"}, "shared_P": {}, f"P_{digest}": {}}})
    assert made["properties"]["p"]["$ref"] not in {"#/$defs/P", "#/$defs/shared_P", f"#/$defs/P_{digest}"}


def test_definitions_hold_shared_schemas_before_2019_09() -> None:
    old = {"$schema": dialects.DRAFT_4.uri}
    made = wire({"p": {"$ref": "#/schemas/P"}}, {"P": old | {"type": "string"}}, **old, definitions={"x": {}})
    assert made["properties"] == {"p": {"$ref": "#/definitions/P"}}
    assert made["definitions"] == {"x": {}, "P": {"type": "string"}}


def test_handles_are_taken_out_of_schemas_only() -> None:
    marked = {"type": "string", "x-handle": "basket"}
    value = {
        "handles": {"basket": {"state": {"type": "object"}, "ttl": "7d"}},
        "schemas": {"Basket": marked},
        "tools": [
            tool(
                properties={
                    "a": marked,
                    "b": {"$ref": "#/schemas/Basket"},
                    "x-handle": {"default": {"x-handle": "basket"}},
                }
            )
        ],
    }
    assert lowered(value).tools[0].input.wire == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"$ref": "#/$defs/Basket"},
            "x-handle": {"default": {"x-handle": "basket"}},
        },
        "$defs": {"Basket": {"type": "string"}},
    }


def test_one_yaml_node_under_two_names_is_changed_in_one_place_only() -> None:
    bundle = load(
        "m.yaml",
        **{
            "m.yaml": """\
                stubwright: 1
                server: {name: a, version: "1"}
                schemas:
                  P: {properties: {a: &a {properties: {b: {$ref: "#/$defs/n"}}}}, $defs: {n: {}}}
                tools:
                  - name: get
                    inputSchema: {type: object, properties: {a: *a, p: {$ref: "#/schemas/P"}}, $defs: {n: {}}}
                """
        },
    )
    made = lower(resolve(bundle), "m.json").tools[0].input.wire
    assert made["properties"]["a"] == {"properties": {"b": {"$ref": "#/$defs/n"}}}
    assert made["$defs"]["P"]["properties"]["a"] == {"properties": {"b": {"$ref": "#/$defs/P/$defs/n"}}}


@pytest.mark.parametrize("draft", amounts.sample(suite.DRAFTS, 1))
def test_bundled_schemas_decide_as_before(corpus: Path, draft: str) -> None:
    """Every case of the official suite, through a shared schema whose name is taken in the tool."""
    judged = 0
    dialect = suite.DRAFTS[draft]
    for path in suite.files(corpus, draft):
        for group in json.loads(path.read_text("utf-8")):
            shared = suite.add_identifier(group["schema"], dialect)
            if (
                isinstance(shared, bool)
                or dialects.find_dialect(shared, dialect) != dialect
                or "localhost" in json.dumps(shared)
            ):
                continue
            schema = {"$schema": dialect.uri, "type": "object", "properties": {"v": {"$ref": "#/schemas/S"}}}
            made = lowered(
                {
                    "schemas": {"S": {"$schema": dialect.uri, **shared}},
                    "tools": [tool() | {"inputSchema": schema | {dialect.defs: {"S": {"not": {}}}}}],
                }
            )
            validator = validator_for(dict(made.tools[0].input.wire), offline=True)
            for case in group["tests"]:
                assert validator.is_valid({"v": case["data"]}) is case["valid"], f"{group['description']}: {case}"
                judged += 1
    assert judged > 500


@pytest.mark.long
def test_tools_of_public_servers_go_on_the_wire_verbatim(corpus: Path) -> None:
    for path in sorted((corpus / "tools").glob("*.json")):
        tools = json.loads(path.read_text("utf-8"))["tools"]
        texts = {"m.json": json.dumps({"stubwright": 1, "server": SERVER, "include": ["s.json"]})}
        bundle = load("m.json", **texts, **{"s.json": json.dumps({"tools": tools})})
        assert json.dumps([made.definition for made in lower(resolve(bundle), "m.json").tools]) == json.dumps(tools)
