"""Documents with common deviations: references at unspecified places, API keys listed as parameters, and invalid parts.

An invalid response only costs the output schema, an invalid request only the operation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import stubwright
from openapi_documents import imported, operation, query
from stubwright.importers.document_reader import DocumentError
from stubwright.importers.openapi import manifest
from stubwright.importers.openapi.documents import Documents
from stubwright.importers.openapi.naming import Selection
from stubwright.project.files import disk

HOST = {"servers": [{"url": "https://api.example.com"}]}
KEY = {"type": "apiKey", "in": "query", "name": "key"}
JSON = "application/json"


def answered(schema: Any) -> dict[str, Any]:
    """The responses of an operation that answers with a schema."""
    return {"200": {"description": "x", "content": {JSON: {"schema": schema}}}}


# --- references ----------------------------------------------------------------------------------------------------


def split(folder: Path) -> Path:
    """A document in parts, as editors and bundlers of documents have them."""
    parts = {
        "api.yaml": """
openapi: 3.0.3
info: {$ref: info.yaml}
servers: {$ref: "info.yaml#/x-servers"}
paths: {$ref: paths.yaml}
components: {$ref: components.yaml}
""",
        "info.yaml": "title: Keys\nversion: 1\nx-servers: [{url: https://keys.example.com}]\n",
        "paths.yaml": """
/keys:
  post: {$ref: res/create.yaml}
  get: {$ref: res/list.yaml}
/keys/{id}:
  get: {$ref: "res/list.yaml#/x-one", description: Beside it.}
""",
        "res/create.yaml": """
operationId: createKey
security: {$ref: "list.yaml#/x-security"}
requestBody: {content: {$ref: "list.yaml#/x-content"}}
responses: {$ref: "list.yaml#/x-responses"}
""",
        "res/list.yaml": """
operationId: listKeys
parameters: {$ref: "#/x-parameters"}
responses: {$ref: "#/x-responses"}
x-one: {operationId: getKey, parameters: [{$ref: "#/x-id"}], responses: {}}
x-id: {name: id, in: path, required: true, schema: {type: string}}
x-parameters: [{name: limit, in: query, schema: {type: integer}}]
x-responses: {200: {description: Fine., content: {$ref: "#/x-content"}}}
x-content: {application/json: {$ref: "#/x-media"}}
x-media: {schema: {$ref: "../components.yaml#/schemas/Key"}}
x-security: [{token: []}]
""",
        "components.yaml": """
schemas: {$ref: schemas.yaml}
securitySchemes: {$ref: "#/x-schemes"}
x-schemes: {token: {type: http, scheme: bearer}}
""",
        "schemas.yaml": """
Key: {type: object, properties: {$ref: "#/Properties"}, example: {$ref: "#/Examples/one"}}
Properties: {id: {type: string}}
Examples: {one: {summary: One, value: {id: k1}}}
""",
    }
    for name, text in parts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / "api.yaml"


def test_references_are_followed_wherever_bundlers_follow_them(tmp_path: Path) -> None:
    made = manifest.make_manifest(Documents(str(split(tmp_path)), disk.Disk()), Selection())
    key = {"type": "object", "properties": {"id": {"type": "string"}}, "examples": [{"id": "k1"}]}
    assert made.manifest["schemas"] == {"Key": key}
    create, listing, one = made.manifest["tools"]
    assert create["inputSchema"]["properties"] == {"id": {"type": "string"}}
    assert create["outputSchema"] == {"type": "object", "$ref": "#/schemas/Key"} == listing["outputSchema"]
    assert create["stubwright"]["http"] == {"api": "keys", "method": "POST", "url": "/keys"}
    assert listing["stubwright"]["http"]["query"] == {"limit": "{limit}"}
    assert one["stubwright"]["http"]["url"] == "/keys/{id}"
    api = {"baseUrl": "https://keys.example.com", "baseUrlEnv": "KEYS_BASE_URL", "output": "lenient"}
    auth = {"token": {"type": "bearer", "env": "KEYS_TOKEN"}}
    assert made.manifest["apis"]["keys"] == {**api, "auth": auth, "security": [["token"]]}
    (note,) = [note for note in made.notes if "references were followed" in note]
    assert "an operation (3)" in note
    assert "`paths`" in note
    assert "`properties`" in note


def test_a_document_with_many_references_for_operations_gets_one_note(tmp_path: Path) -> None:
    operations = {f"op{number}": {"operationId": f"op{number}", "responses": {}} for number in range(40)}
    paths = {f"/{name}": {"get": {"$ref": f"#/x-operations/{name}"}} for name in operations}
    made = imported(tmp_path, {**HOST, "paths": paths, "x-operations": operations})
    assert len(made.manifest["tools"]) == 40
    assert made.notes == (
        ("references were followed where the specification does not allow them: in place of an operation (40)"),
    )


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ({"$ref": "#/x-none"}, "the reference `#/x-none` does not resolve"),
        ({"$ref": "#/paths/~1x/get"}, "the reference `#/paths/~1x/get` is circular"),
        ({"$ref": "#/x-op", "parameters": []},
         "`parameters` accompanies a reference in document.json#/paths/~1x/get (undefined in OpenAPI)"),
        ({"$ref": "https://e.example/op.yaml"},
         "the reference `https://e.example/op.yaml` is not a relative path"),
    ],
)  # fmt: skip
def test_an_operation_whose_reference_leads_nowhere_is_left_out(reference: Any, why: str, tmp_path: Path) -> None:
    paths = {"/x": {"get": reference, "put": {"operationId": "good"}}}
    made = imported(tmp_path, {**HOST, "paths": paths, "x-op": {"operationId": "op"}})
    assert [tool["name"] for tool in made.manifest["tools"]] == ["good"]
    assert made.notes == (f"`GET /x` was omitted: {why}",)


@pytest.mark.parametrize("part", ["paths", "info"])
def test_a_document_whose_own_parts_lead_nowhere_is_refused(part: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=f"its `{part}` cannot be read: the reference `#/x-none` does not resolve"):
        imported(tmp_path, {"paths": {}, part: {"$ref": "#/x-none"}})


def test_a_query_in_a_path_is_sent_as_it_stands(tmp_path: Path) -> None:
    identifier = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    told = {"parameters": [identifier, query("limit", {"type": "integer"})]}
    tool = operation(tmp_path, told, "/x/{id}?beta=true&v=2#again")
    assert tool["stubwright"]["http"]["url"] == "/x/{id}?beta=true&v=2"
    assert tool["stubwright"]["http"]["query"] == {"limit": "{limit}"}


# --- keys that are parameters, too -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "key", "listed", "goes"),
    [
        ("query", "key", "key", True),
        ("query", "key", "Key", False),
        ("header", "X-Api-Key", "x-api-KEY", True),
        ("cookie", "key", "key", True),
        ("header", "key", "other", False),
    ],
)
def test_a_key_that_is_listed_as_a_parameter_is_no_argument(
    where: str, key: str, listed: str, goes: bool, tmp_path: Path
) -> None:
    scheme = {"type": "apiKey", "in": where, "name": key}
    parameter = {"name": listed, "in": where, "required": True, "schema": {"type": "string"}}
    paths = {"/x": {"get": {"operationId": "op", "parameters": [parameter, query("limit", {"type": "integer"})]}}}
    document = {**HOST, "paths": paths, "security": [{"k": []}], "components": {"securitySchemes": {"k": scheme}}}
    made = imported(tmp_path, document)
    (tool,) = made.manifest["tools"]
    assert [*tool["inputSchema"]["properties"]] == (["limit"] if goes else [listed, "limit"])
    told = f"the parameter `{key}` ({where}) is the credential for `k`, so it is not an argument"
    assert (told in made.notes) == goes
    assert made.manifest["apis"]["sample"]["security"] == [["k"]]


def test_a_parameter_of_an_operation_that_needs_no_key_stays_and_no_key_goes_beside_it(tmp_path: Path) -> None:
    parameter = query("key", {"type": "string"})
    schemes = {"k": KEY, "t": {"type": "http", "scheme": "bearer"}}
    paths = {
        "/open": {"get": {"operationId": "open", "security": [], "parameters": [parameter]}},
        "/maybe": {"get": {"operationId": "maybe", "security": [{}, {"k": []}], "parameters": [parameter]}},
        "/other": {"get": {"operationId": "other", "security": [{"t": []}], "parameters": [parameter]}},
    }
    document = {**HOST, "paths": paths, "security": [{"k": []}, {"t": []}], "components": {"securitySchemes": schemes}}
    made = imported(tmp_path, document)
    tools = {tool["name"]: tool for tool in made.manifest["tools"]}
    shared = made.manifest["apis"]["sample"]["security"]
    security = {name: tool["stubwright"]["http"].get("security", shared) for name, tool in tools.items()}
    assert security == {"open": [[], ["t"]], "maybe": [["k"], []], "other": [["t"]]}
    arguments = {name: [*tool["inputSchema"]["properties"]] for name, tool in tools.items()}
    assert arguments == {"open": ["key"], "maybe": [], "other": ["key"]}


# --- what cannot be told ---------------------------------------------------------------------------------------------

ODD: list[tuple[Any, str]] = [
    ({"$recursiveRef": "#"}, "has the unsupported keyword `$recursiveRef`"),
    ({"type": "array", "items": {"$ref": "#/components/schemas/Nobody"}},
     "the reference `#/components/schemas/Nobody` does not resolve"),
    ({"type": "strong"}, "`strong` is not a JSON Schema type"),
    ({"$ref": "#/components/schemas/Wrong"}, "`minLength` must be an integer"),
    ({"$ref": "#/components/schemas/Loop"}, "is circular"),
]  # fmt: skip
SCHEMAS = {"Wrong": {"minLength": "1"}, "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}]}}


@pytest.mark.parametrize(("schema", "why"), ODD)
def test_an_odd_response_costs_the_output_schema_alone(schema: Any, why: str, tmp_path: Path) -> None:
    paths = {"/x": {"get": {"operationId": "op", "responses": answered(schema)}}}
    made = imported(tmp_path, {**HOST, "paths": paths, "components": {"schemas": SCHEMAS}})
    (tool,) = made.manifest["tools"]
    assert "outputSchema" not in tool
    (note,) = made.notes
    assert why in note or "circular" in why
    assert "`outputSchema`" in note
    assert "`op`" in note


@pytest.mark.parametrize(("schema", "why"), ODD)
def test_an_odd_request_costs_the_operation(schema: Any, why: str, tmp_path: Path) -> None:
    body = {"content": {JSON: {"schema": schema}}}
    paths = {"/x": {"post": {"operationId": "op", "requestBody": body}, "put": {"operationId": "good"}}}
    made = imported(tmp_path, {**HOST, "paths": paths, "components": {"schemas": SCHEMAS}})
    assert [tool["name"] for tool in made.manifest["tools"]] == ["good"]
    (note,) = made.notes
    assert "was omitted" in note
    assert why in note or "circular" in why


def test_a_missing_schema_is_named_in_full(tmp_path: Path) -> None:
    name = "A.Very.Long.Name.Of.A.Schema.That.Nobody.Ever.Described.In.Any.Document"
    told = {"operationId": "op", "parameters": [query("q", {"$ref": f"#/components/schemas/{name}"})]}
    made = imported(tmp_path, {**HOST, "paths": {"/x": {"get": told}}})
    assert made.notes == (f"`op` (GET /x) was omitted: the reference `#/components/schemas/{name}` does not resolve",)


def test_a_response_whose_reference_leads_nowhere_costs_the_output_schema_alone(tmp_path: Path) -> None:
    gone = {"200": {"$ref": "#/components/responses/Gone"}}
    paths = {f"/{name}": {"get": {"operationId": name, "responses": gone}} for name in "abcdefgh"}
    made = imported(tmp_path, {**HOST, "paths": paths})
    assert len(made.manifest["tools"]) == 8
    why = "the reference `#/components/responses/Gone` does not resolve"
    assert made.notes == (f"`a`, `b`, `c`, `d`, `e` and 3 more: the `outputSchema` was omitted: {why}",)


def test_keywords_that_nobody_knows_cost_nothing(tmp_path: Path) -> None:
    odd = {"type": "object", "titles": ["x"], "typeof": "book", "description_old": "x"}
    tool = operation(tmp_path, {"responses": answered(odd)})
    assert tool["outputSchema"] == {"type": "object"}


def test_a_tool_of_a_saved_list_keeps_keywords_that_nobody_knows(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"typeof": "book", "description_old": "x", "minimun": 1}}}
    listed = {"tools": [{"name": "a", "description": "A.", "inputSchema": schema}]}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    for output in ("m.yaml", "m.json"):
        done = stubwright("import", "tools", "list.json", "--name", "a", "-o", output, cwd=tmp_path)
        assert done.stderr == "note: `stubwright check` reports 3 warnings about the contents of the file\n"
        checked = stubwright("check", output, cwd=tmp_path)
        assert (checked.returncode, checked.stderr.count("warning[SW303]")) == (0, 3)
        assert stubwright("generate", output, "-o", f"{output}.d", cwd=tmp_path).returncode == 0
    text = (tmp_path / "m.yaml").read_text()
    (tmp_path / "m.yaml").write_text(text.partition("\n")[2])
    mine = stubwright("check", "m.yaml", cwd=tmp_path)
    assert (mine.returncode, mine.stderr.count("error[SW205]")) == (1, 3)


def test_anchors_are_found_in_the_schema_or_document_around_them(tmp_path: Path) -> None:
    whole = {
        "$id": "https://example.com/s/whole",
        "type": "object",
        "properties": {
            "a": {"$ref": "#here"},
            "b": {"$ref": "other#there"},
            "c": {"$ref": "https://example.com/s/other#there"},
        },
        "$defs": {"here": {"$anchor": "here", "type": "integer"}},
    }
    schemas = {
        "Whole": whole,
        "Other": {"$id": "https://example.com/s/other", "$defs": {"x": {"$anchor": "there", "type": "boolean"}}},
        "Here": {"$anchor": "here", "type": "null"},
    }
    properties = {"whole": {"$ref": "#/components/schemas/Whole"}, "here": {"$ref": "#here"}}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": properties}}}}
    paths = {"/x": {"post": {"operationId": "op", "requestBody": body, "responses": {}}}}
    document = {"servers": [{"url": "https://h.example"}], "paths": paths, "components": {"schemas": schemas}}
    made = imported(tmp_path, document)
    (tool,) = made.manifest["tools"]

    def find_type(schema: dict[str, Any]) -> Any:
        reference = schema.get("$ref")
        return find_type(made.manifest["schemas"][reference.rpartition("/")[2]]) if reference else schema["type"]

    assert find_type(tool["inputSchema"]["properties"]["here"]) == "null"
    whole = made.manifest["schemas"]["Whole"]["properties"]
    assert {name: find_type(schema) for name, schema in whole.items()} == {
        "a": "integer",
        "b": "boolean",
        "c": "boolean",
    }
    properties["here"] = {"$ref": "#nowhere"}
    assert "the reference `#nowhere` is to an anchor that was not found" in imported(tmp_path, document).notes[0]
