"""Shorthand: expansion, locations of errors, and values that do not change."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

import amounts
from memory import Files
from stubwright import package_data
from stubwright.compile import pipeline
from stubwright.compile.syntax import shorthand, yamltext
from stubwright.diagnostics import Place

ROOT = Path(__file__).parents[2]
HEAD = "stubwright: 1\nshorthand: true\nserver: {name: desk, version: '1'}\n"
PLACE = {"type": "string", "minLength": 1}
FIX = (
    "write a type or a format of JSON Schema, the name of a shared schema, `any`, `array<…>`, `map<…>`, or several of "
    "them, separated by ` | `"
)


def read(text: str) -> Any:
    value, problems = yamltext.parse(text)
    assert problems == []
    return value


def expand(**value: Any) -> Any:
    expanded = shorthand.expand({"shorthand": True, **value}, "m.yaml")
    assert expanded.faults == []
    return expanded.value


def expand_type(text: Any) -> Any:
    return expand(schemas={"Place": PLACE, "X": text})["schemas"]["X"]


def show(text: str, **files: str) -> list[str]:
    """What is wrong with a manifest, each with its line and column."""
    result = pipeline.compile_manifest("m.yaml", Files(**{"m.yaml": text, **files}))
    spans = [
        result.documents[each.at.file].find_span(each.at) for each in result.diagnostics if isinstance(each.at, Place)
    ]
    return [
        f"{span.line}:{span.column} {each.code} {each.message}"
        for span, each in zip(spans, result.diagnostics, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("string", {"type": "string"}),
        ("object", {"type": "object"}),
        ("array", {"type": "array"}),
        ("any", {}),
        ("date-time", {"type": "string", "format": "date-time"}),
        ("json-pointer", {"type": "string", "format": "json-pointer"}),
        ("Place", {"$ref": "#/schemas/Place"}),
        ("array<Place>", {"type": "array", "items": {"$ref": "#/schemas/Place"}}),
        (
            "map< array<integer> >",
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
        ),
        ("string|null", {"type": ["string", "null"]}),
        ("Place | null", {"anyOf": [{"$ref": "#/schemas/Place"}, {"type": "null"}]}),
        (
            "array<string | Place>",
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/schemas/Place"}]}},
        ),
        (" | ".join(["array<Place>"] * 21), {"anyOf": [{"type": "array", "items": {"$ref": "#/schemas/Place"}}] * 21}),
        ({"type": "Place", "default": "here"}, {"$ref": "#/schemas/Place", "default": "here"}),
        ({"type": "string", "default": "date"}, {"type": "string", "default": "date"}),
        ({"type": ["string", "null"], "enum": ["date"]}, {"type": ["string", "null"], "enum": ["date"]}),
        ({"fields": {}}, {"type": "object"}),
        (
            {"fields": {"a?": "integer"}, "description": "d"},
            {"type": "object", "properties": {"a": {"type": "integer"}}, "description": "d"},
        ),
        ({"properties": {"type": "uuid"}}, {"properties": {"type": {"type": "string", "format": "uuid"}}}),
        ({"prefixItems": ["date", True]}, {"prefixItems": [{"type": "string", "format": "date"}, True]}),
        (
            {"type": "object", "additionalProperties": "Place"},
            {"type": "object", "additionalProperties": {"$ref": "#/schemas/Place"}},
        ),
        (
            {"fields": {"fields": {"fields": {"b": "any"}}}},
            {
                "type": "object",
                "properties": {"fields": {"type": "object", "properties": {"b": {}}, "required": ["b"]}},
                "required": ["fields"],
            },
        ),
    ],
)
def test_a_type_is_written_out(text: Any, schema: Any) -> None:
    assert expand_type(text) == schema


DATE = {"type": "string", "format": "date"}
AUTHOR = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ({"name": "string"}, AUTHOR),
        ({"name": {"type": "string"}}, AUTHOR),
        (
            {"$top": "integer", "x-a?": "date"},
            {"type": "object", "properties": {"$top": {"type": "integer"}, "x-a": DATE}, "required": ["$top"]},
        ),
        ({"type": "array", "items": {"name": "string"}}, {"type": "array", "items": AUTHOR}),
        ({"fields": {"by?": {"name": "string"}}}, {"type": "object", "properties": {"by": AUTHOR}}),
        ({"anyOf": [{"name": "string"}, "null"]}, {"anyOf": [AUTHOR, {"type": "null"}]}),
        (
            {"type": "object", "additionalProperties": {"name": "string"}},
            {"type": "object", "additionalProperties": AUTHOR},
        ),
        (
            {"by": {"name": "string"}, "type?": "date"},
            {
                "type": "object",
                "properties": {"by": AUTHOR, "type": {"type": "string", "format": "date"}},
                "required": ["by"],
            },
        ),
        ({"type": "any", "x-note": "date"}, {"x-note": "date"}),
        (
            {"name?": "string", "title": "string", "description": {"name": "string"}},
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "title": {"type": "string"}, "description": AUTHOR},
                "required": ["title", "description"],
            },
        ),
        ({"type": "string", "title": "Place"}, {"type": "string", "title": "Place"}),
        ({"type": "string", "title": "date"}, {"type": "string", "title": "date"}),
        ({"type": "string", "pattern": "date"}, {"type": "string", "pattern": "date"}),
        ({}, {}),
    ],
)
def test_a_mapping_without_a_keyword_has_fields(short: Any, long: Any) -> None:
    assert expand_type(short) == long
    tool = expand(tools=[{"name": "t", "input": {"a": short}, "output": {"a": short}}])["tools"][0]
    assert tool["inputSchema"]["properties"]["a"] == tool["outputSchema"]["properties"]["a"] == long


@pytest.mark.parametrize("keyword", ["$anchor", "$comment", "$dynamicRef", "$recursiveRef", "$vocabulary"])
@pytest.mark.parametrize(
    "dialect", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-04/schema#"]
)
def test_a_keyword_of_any_dialect_is_not_a_field(keyword: str, dialect: str) -> None:
    schema = {"$schema": dialect, keyword: "integer"}
    assert expand_type(schema) == schema
    assert expand_type({"$top": "integer"})["properties"] == {"$top": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "fix"),
    [
        ({"minLength": 3}, "write `{type: string, minLength: 3}`"),
        ({"pattern": "[a-z]"}, 'write `{type: string, pattern: "[a-z]"}`'),
        ({"format": "phone", "title": "A phone"}, "write `{type: string, format: phone, title: A phone}`"),
        ({"minimum": 0}, "write `{type: number, minimum: 0}`"),
        ({"items": {"a": "date"}}, "write `{type: array, items: {a: date}}`"),
        ({"additionalProperties": False}, "write `{type: object, additionalProperties: false}`"),
        ({"maxItems": 2}, "write `{type: array, maxItems: 2}`"),
        ({"default": True}, "write `{type: boolean, default: true}`"),
        ({"description": "x"}, "write `{type: any, description: x}` for any value"),
        ({"x-unit": "m"}, "write `{type: any, x-unit: m}` for any value"),
        ({"ref": "Place"}, "write `Place`, or `fields: {ref: Place}` for a field `ref`"),
        ({"extends": "Place"}, "write `Place`, or `fields: {extends: Place}` for a field `extends`"),
        (
            {"extends": "Place", "a": "string"},
            (
                "write `{allOf: [Place, {fields: {a: string}}]}`, or `fields: {extends: Place, a: string}` for a "
                "field `extends`"
            ),
        ),
    ],
)
def test_a_field_needs_a_type(schema: Any, fix: str) -> None:
    tool = {"name": "t", "input": {"a": schema}}
    [fault] = shorthand.expand({"shorthand": True, "schemas": {"Place": PLACE}, "tools": [tool]}, "m.yaml").faults
    assert (fault.code, fault.help) == ("SW108", fix)


@pytest.mark.parametrize("schema", [{"title": "A title"}, {"format": "phone"}, {"minLength": 3}])
def test_a_part_of_a_schema_needs_no_type(schema: Any) -> None:
    assert expand_type({"type": "string", "allOf": [schema]}) == {"type": "string", "allOf": [schema]}


@pytest.mark.parametrize(
    ("schema", "fix"),
    [
        ({"a?": "string", "type": "date"}, 'if the keys are fields, write `fields: {"a?": string, type: date}`'),
        ({"type": "string", "Optional": True}, "write `?` after the field name"),
        ({"type": "string", "nullable": True}, "write `type: … | null`"),
        ({"type": "object", "a": "string"}, "if the keys are fields, write `fields: {a: string}`"),
        (
            {"a": "string", "title": "The title"},
            "if the keys are fields, write `fields: {a: string}, title: The title`",
        ),
        ({"minLenght": 3}, "did you mean `minLength`?"),
        ({"zzz": 3}, "remove it, or start its name with `x-`"),
        ({"type": "string", "format": "date | null"}, "write `type: date | null`"),
        ({"type": "string", "format": "string"}, "write `type: string`"),
        ({"type": "string", "format": "date_time"}, "did you mean `date-time`?"),
        ({"type": "string", "format": "uuid4"}, "did you mean `uuid`?"),
        ({"a": "string", "title": ["x"]}, "if the keys are fields, write `fields: {a: string}, title: [x]`"),
        ({"a": "string", "required": ["a"]}, "if the keys are fields, write `fields: {a: string}`"),
        (
            {"a": "string", "additionalProperties": False},
            "if the keys are fields, write `fields: {a: string}, additionalProperties: false`",
        ),
        ({"type": "string", "regex": "^a"}, "did you mean `pattern`?"),
        ({"type": "string", "doc": "The name"}, "did you mean `description`?"),
        ({"type": "integer", "example": 3}, "write `examples: [3]`"),
        ({"type": "array", "of": "string"}, "did you mean `items`?"),
        ({"type": "string", "options": ["a"]}, "did you mean `enum`?"),
        ({"type": "string", "required": True}, "remove it"),
        ({"type": "string", "required": False}, "remove it, and write `?` after the field name"),
        ({"type": "list", "items": "string"}, "write `array`"),
        ({"type": "enum", "enum": ["a"]}, "write `enum: [VALUE, …]`, and remove `type`"),
        ({"type": "union", "anyOf": ["date"]}, "write `anyOf: [TYPE, …]`, and remove `type`"),
        ({"items": "date"}, "write `array<date>`, or `fields: {items: date}` for a field"),
        (
            {"items": "date", "title": "Days"},
            "write `{type: array<date>, title: Days}`, or `fields: {items: date}` for a field",
        ),
        ({"additionalProperties": "integer"}, "write `map<integer>`"),
        ({"default": "string"}, "if they are fields, write `fields: {default: string}`; otherwise reword the strings"),
        ({"string": "integer"}, "write `map<integer>` for a map, or `fields: {string: integer}` for a field"),
        (
            {"title": "string"},
            "if they are fields, write `fields: {title: string}`; otherwise reword the strings",
        ),
        (
            {"x-request-id": "uuid"},
            "if they are fields, write `fields: {x-request-id: uuid}`; otherwise reword the strings",
        ),
        ({"$top": "integer", "$id": "a"}, "if the keys are fields, write `fields: {$top: integer}, $id: a`"),
        ({f"field_{n}": "string" for n in range(20)} | {"type": "date"}, "if the keys are fields, write `fields: {…}`"),
    ],
)
def test_what_could_mean_two_things_is_a_fault(schema: Any, fix: str) -> None:
    [fault] = shorthand.expand({"shorthand": True, "schemas": {"X": schema}}, "m.yaml").faults
    assert fault.help == fix


@pytest.mark.parametrize(
    "word",
    [
        "int32",
        "int64",
        "float",
        "double",
        "decimal",
        "byte",
        "binary",
        "password",
        "text",
        "char",
        "url",
        "ip",
        "timestamp",
        "phone",
        "currency",
        "markdown",
    ],
)
def test_formats_of_others_are_accepted(word: str) -> None:
    assert expand_type({"type": "string", "format": word}) == {"type": "string", "format": word}


def test_arguments_may_be_a_shared_object() -> None:
    schemas = {"Book": {"title": "string", "isbn": "string"}, "Alias": "Book", "Loop": "Loop", "Day": "date"}
    tools = [{"name": name, "input": name} for name in ("Book", "Alias", "Loop", "map<integer>", "object")]
    roots = [tool["inputSchema"] for tool in expand(schemas=schemas, tools=tools)["tools"]]
    assert [root["type"] for root in roots] == ["object"] * 5
    assert [root.get("$ref") for root in roots[:3]] == [f"#/schemas/{name}" for name in ("Book", "Alias", "Loop")]
    for name in ("Day", "integer", "array<Book>", "Book | null"):
        value = {"shorthand": True, "schemas": schemas, "tools": [{"name": "t", "input": name}]}
        [fault] = shorthand.expand(value, "m.yaml").faults
        assert fault.message == f"arguments must be an object, and `{name}` is not"


def test_every_place_of_a_schema_may_have_a_type() -> None:
    ask = {"ask": {"q": {"message": "m", "schema": {"fields": {"a": "date"}}}}}
    form = {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}, "required": ["a"]}
    value = expand(
        tools=[{"name": "t", "inputSchema": {"fields": {"a": "date"}}, "stubwright": ask}],
        prompts=[{"name": "p", "stubwright": ask}],
        resourceTemplates=[{"uriTemplate": "a://{b}", "name": "r", "stubwright": ask}],
        overlay={"tools": {"t": ask}},
        handles={"basket": {"state": {"fields": {"a": "date"}}}},
    )
    asked = [value["tools"][0], value["prompts"][0], value["resourceTemplates"][0]]
    assert [each["stubwright"]["ask"]["q"]["schema"] for each in asked] == [form] * 3
    assert value["tools"][0]["inputSchema"] == form == value["handles"]["basket"]["state"]
    assert value["overlay"]["tools"]["t"]["ask"]["q"]["schema"] == form


def test_input_is_closed_and_output_is_not_and_keys_keep_their_order() -> None:
    tool = {"name": "t", "output": {"a": "string"}, "x-note": 1, "input": {}, "annotations": {}}
    [long] = expand(tools=[tool])["tools"]
    assert list(long) == ["name", "outputSchema", "x-note", "inputSchema", "annotations"]
    assert long["inputSchema"] == {"type": "object", "properties": {}, "additionalProperties": False}
    assert long["outputSchema"] == {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def test_an_alias_may_be_in_several_tools() -> None:
    tools = """
    tools:
      - {name: a, description: A., input: &who {who: string}}
      - {name: b, description: B., input: *who}
    """
    result = pipeline.compile_manifest("m.yaml", Files(**{"m.yaml": HEAD + tools.replace("\n    ", "\n")}))
    assert result.manifest is not None
    first, second = (tool.definition["inputSchema"] for tool in result.manifest.tools)
    assert (
        first
        == second
        == {
            "type": "object",
            "properties": {"who": {"type": "string"}},
            "required": ["who"],
            "additionalProperties": False,
        }
    )


def test_the_docs_show_two_forms_of_one_manifest() -> None:
    page = (ROOT / "docs" / "shorthand.md").read_text("utf-8")
    short, long = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert shorthand.expand(read(short), "m.yaml").value == {"shorthand": True, **read(long)}
    manifests = [pipeline.compile_manifest("m.yaml", Files(**{"m.yaml": text})).manifest for text in (short, long)]
    assert manifests[0] is not None
    assert manifests[1] is not None
    assert manifests[0].tools == manifests[1].tools
    rows = re.findall(r"^\| (?:`([\w<>]+)`|<code>(.*?)</code>) \| `(.*?\})`.*\|$", page, re.MULTILINE)
    for name, code, schema in rows:
        text = name or code.replace("&#124;", "|")
        found = expand(schemas={"Book": True, "X": text})["schemas"]["X"]
        assert found == read(schema), text
    assert len(rows) == 6


def _list_yaml() -> Iterator[tuple[str, str]]:
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")]):
        for text in re.findall(r"```yaml\n(.*?)```", path.read_text("utf-8"), re.DOTALL):
            yield path.name, text
    for path in sorted((ROOT / "specs").rglob("*.yaml")):
        yield path.name, path.read_text("utf-8")


def test_other_readers_can_read_what_we_show() -> None:
    """As pre-commit's check-yaml and yamllint do, and PyYAML without libyaml."""
    wrong = []
    for name, text in _list_yaml():
        try:
            list(yaml.safe_load_all(text))
        except yaml.YAMLError as error:
            wrong.append(f"{name}: {error}")
    assert wrong == []


flow_texts = st.recursive(
    st.text("ab?:, ", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(st.text("ab?", min_size=1, max_size=3), inner), max_size=3).map(
            lambda entries: f"{{{', '.join(f'{key}: {value}' for key, value in entries)}}}"
        )
    ),
    max_leaves=6,
)


@given(flow_texts)
@example("{a: string, b?: string}")
@example("{z: a ?b, y: [c?, d ? e]}")
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_a_question_mark_is_read_without_libyaml(text: str) -> None:
    """Where libyaml reads a text, so does the other reader, with the same value."""
    value, problems = yamltext.parse(f"k: {text}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yamltext, "_LOADER", yamltext._PythonLoader)
        assert problems or yamltext.parse(f"k: {text}\n") == (value, [])


def test_editors_accept_it() -> None:
    schema = jsonschema_rs.Draft202012Validator(json.loads(package_data.MANIFEST_SCHEMA.read_bytes()))
    for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "shorthand.md").read_text("utf-8"), re.DOTALL):
        assert [error.message for error in schema.iter_errors(read(text))] == []
    neither = read(HEAD + "tools: [{name: t, description: T., output: date}]\n")
    assert [error.instance_path for error in schema.iter_errors(neither)] == [["tools", 0]]


def test_each_file_says_it_for_itself() -> None:
    part = "stubwright: 1\nshorthand: true\ntools: [{name: a, description: A., input: {b: string}}]\n"
    entry = HEAD.replace("shorthand: true\n", "") + "include: [part.yaml]\n"
    assert show(entry, **{"part.yaml": part}) == []
    wrong = show(HEAD + "include: [part.yaml]\n", **{"part.yaml": part.replace("shorthand: true\n", "")})
    assert [each.partition(" ")[2] for each in wrong] == [
        "SW101 a tool needs `inputSchema`",
        "SW300 MCP does not define `input` in a tool",
    ]


def test_json_may_be_short_too() -> None:
    value = {"stubwright": 1, "shorthand": True, "server": {"name": "a", "version": "1"}}
    text = json.dumps({**value, "tools": [{"name": "t", "description": "T.", "input": {"a": "dat"}}]}, indent=1)
    result = pipeline.compile_manifest("m.json", Files(**{"m.json": text}))
    [fault] = result.diagnostics
    assert fault.message == "the string `dat` is not a type"
    assert isinstance(fault.at, Place)
    line = result.documents["m.json"].find_span(fault.at).line
    assert '"a": "dat"' in text.splitlines()[line - 1]


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("tools: [{name: t, description: T., input: {a: Book}}]", "4:47 SW108 the string `Book` is not a type"),
        ("schemas: {A: 'array<'}", "4:14 SW108 the string `array<` is not a type"),
        ("schemas: {A: 'array<string>>'}", "4:28 SW108 `>` is not part of a type"),
        ("schemas: {A: '| null'}", "4:14 SW108 the string `| null` is not a type"),
        ("schemas: {A: map}", "4:14 SW108 the string `map` is not a type"),
        ("schemas: {A: 'other.yaml#/schemas/B'}", "4:15 SW108 `other.yaml` is not a type"),
        (
            "schemas: {uuid: string}",
            "4:11 SW108 `uuid` is a built-in shorthand type, so types cannot refer to this schema",
        ),
        ("schemas: {A: {fields: {b: {fields: 3}}}}", "4:36 SW108 expected a mapping of fields, found the number `3`"),
        ("schemas: {A: {fields: {b: string, b?: string}}}", "4:35 SW108 duplicate field `b`"),
        ("schemas: {A: {fields: {}, type: object}}", "4:15 SW108 `fields` replaces `type`"),
        ("schemas: {A: {type: date, format: date}}", "4:15 SW108 `type` replaces `format`"),
        ("schemas: {A: 'Record<string, x>'}", "4:15 SW108 `Record` is not a type"),
        ('schemas: {A: "string | undefined"}', "4:24 SW108 `undefined` is not a type"),
        ("schemas: {A: {type: integer = 3}}", "4:29 SW108 `= 3` is not part of a type"),
        ('schemas: {A: "\\u0020int | x"}', "4:14 SW108 `int` is not a type"),
        ("schemas: {A: {b: string, type: string}}", "4:15 SW108 `b` is not a JSON Schema keyword"),
        ("schemas: {A: {type: string, optional: true}}", "4:29 SW108 `optional` is not a JSON Schema keyword"),
        ("schemas: {A: {minLenght: 3}}", "4:15 SW108 `minLenght` is not a JSON Schema keyword"),
        (
            "schemas: {A: {title: string, pattern: date}}",
            "4:15 SW108 these keys could be fields or JSON Schema keywords",
        ),
        (
            "schemas: {A: {type: string, title: integer}}",
            "4:15 SW108 these keys could be fields or JSON Schema keywords",
        ),
        ("schemas: {A: {format: datetime}}", "4:23 SW108 `datetime` is not a JSON Schema format"),
        (
            "tools: [{name: t, description: T., input: date}]",
            "4:43 SW108 arguments must be an object, and `date` is not",
        ),
        (
            "tools: [{name: t, description: T., input: {}, inputSchema: {}}]",
            "4:36 SW108 `input` and `inputSchema` are alternatives",
        ),
        (
            "tools: [{name: t, description: T., input: [a]}]",
            "4:36 SW108 expected a type or a mapping of fields, found a list",
        ),
    ],
)
def test_a_fault_of_shorthand_is_shown_where_it_is(part: str, shown: str) -> None:
    assert show(HEAD + part + "\n") == [shown]


HELPS = [
    ("string?", "write `string`, and put the `?` after the field name"),
    ("Place[]", "write `array<Place>`"),
    ("List<string>", "write `array<string>`"),
    ("date | None", "write `date | null`"),
    ("int", "write `integer`"),
    ("str", "write `string`"),
    ("Plcae", "did you mean `Place`?"),
    ("Order", "declare `Order` under `schemas` of this file"),
    ("map", "write `map<…>` with the type of its values, or `object`"),
    ("Record<string, number>", "write `map<number>`"),
    ("Dict[str, List[int]]", "write `map<array<integer>>`"),
    ("Optional[str]", "write `string | null`"),
    ("typing.Union[str, Place]", "write `string | Place`"),
    ("red | green", "write `{enum: [red, green]}`"),
    ("'on' | \"very big\" | null", 'write `{enum: ["on", "very big", null]}`'),
    ("Literal[1, 2.5]", "write `{enum: [1, 2.5]}`"),
    ("true | false", "write `boolean`"),
    ("string | undefined", "write `string`, and put the `?` after the field name"),
    ("integer = 3", "write `{type: integer, default: 3}`"),
    ("str | None", "write `string | null`"),
    ("(string | null)[]", "write `array<string | null>`"),
    ("list of Place", "write `array<Place>`"),
    ("strnig | null", "did you mean `string`?"),
    ("string & Place", "write `{allOf: [string, Place]}`"),
    ("tuple[int, str]", "write `{type: array, prefixItems: [integer, string], items: false}`"),
    ("tuple[int, ...]", "write `array<integer>`"),
    ("bytes", "write `{type: string, contentEncoding: base64}`: JSON has no bytes"),
    ("array<" * 30, "nest at most 20 types, and declare the inner ones under `schemas`"),
    ("[String!]!", "write `array<string>`"),
    ("String!", "write `string`"),
    ("[]Place", "write `array<Place>`"),
    ("*string", "write `string | null`"),
    ("map[string]int", "write `map<integer>`"),
    ("map[string][]*Place", "write `map<array<Place | null>>`"),
    ("[int, str]", "write `{type: array, prefixItems: [integer, string], items: false}`"),
    ("[int, Zzz]", FIX),
    ("#/schemas/Place", "write `Place`"),
    ("#/components/schemas/Place", "write `Place`"),
    ("$Place", "write `Place`"),
    ("json", "write `any`"),
    ("varchar(20)", "write `{type: string, maxLength: 20}`"),
    ("integer 1..10", "write `{type: integer, minimum: 1, maximum: 10}`"),
    ("float(0, 1)", "write `{type: number, minimum: 0, maximum: 1}`"),
    ("int >= 0", "write `{type: integer, minimum: 0}`"),
    ("int <= 9", "write `{type: integer, maximum: 9}`"),
    ("number(2)", "write `number`"),
    ("Place 1..3", FIX),
    ("string // the name", 'write `{type: string, description: "the name"}`'),
]


@pytest.mark.parametrize(("text", "fix"), HELPS)
def test_a_suggested_type_is_a_type(text: str, fix: str) -> None:
    suggested = re.fullmatch(r"write `([^{}…`]+)`(, and .*)?", fix)
    if suggested is not None:
        assert isinstance(expand_type(suggested[1]), dict)


@pytest.mark.parametrize(("text", "fix"), HELPS)
def test_the_help_says_what_to_write(text: str, fix: str) -> None:
    value = {"shorthand": True, "schemas": {"Place": PLACE, "X": text}}
    [fault] = shorthand.expand(value, "m.yaml").faults
    assert fault.help == fix


def test_faults_of_what_it_stands_for_are_shown_where_it_is_written() -> None:
    part = """
schemas: {Code: {type: string, pattern: "("}}
tools:
  - name: t
    description: T.
    input:
      code?: Code
      near?:
        fields: {x?: {type: number, minimum: one}}
      limit?: {type: integer, default: few}
    output: array<Code>
"""
    assert [each[:11] for each in show(HEAD + part)] == ["12:46 SW204"]
    assert [each[:11] for each in show(HEAD + part.replace("one", "1"))] == ["5:41 SW227 ", "13:40 SW320"]


def test_a_type_that_is_nested_deeply_is_refused() -> None:
    deep = "array<" * 10_000 + "string" + ">" * 10_000
    [fault] = shorthand.expand({"shorthand": True, "schemas": {"A": deep}}, "m.yaml").faults
    assert fault.code == "SW108"


names = st.sampled_from(["Place", "Other", "string", "integer", "null", "date", "uri"])
types = st.recursive(
    names,
    lambda inner: (
        st.builds("{}<{}>".format, st.sampled_from(["array", "map"]), inner)
        | st.lists(inner, min_size=2, max_size=3, unique=True).map(" | ".join)
    ),
    max_leaves=6,
)


@given(types)
def test_spaces_mean_nothing(text: str) -> None:
    schemas = {"Place": True, "Other": True}
    spaced, dense = re.sub(r"([<>|])", r"  \1 ", text), text.replace(" ", "")
    value = expand(schemas={**schemas, "A": spaced, "B": dense})["schemas"]
    assert value["A"] == value["B"]
    assert value["A"]


words = st.sampled_from(
    [
        "fields",
        "type",
        "input",
        "output",
        "inputSchema",
        "properties",
        "items",
        "title",
        "description",
        "format",
        "pattern",
        "array<",
        "A",
        "b?",
        "x-c",
    ]
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | words | types,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["tools", "schemas", "handles", "overlay", "prompts"]), values), values)
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_no_value_breaks_it(manifest: dict[str, Any], tool: Any) -> None:
    value = {"shorthand": True, **manifest, "tools": [tool]}
    before = copy.deepcopy(value)
    expanded = shorthand.expand(value, "m.yaml")
    assert value == before
    assert all(fault.code == "SW108" for fault in expanded.faults)
    long = copy.deepcopy(expanded.value)
    assert shorthand.expand(expanded.value, "m.yaml").value == long or expanded.faults


@pytest.mark.parametrize("path", sorted((ROOT / "specs").glob("*.yaml")), ids=lambda path: path.name)
def test_long_schemas_stay_as_they_are(path: Path) -> None:
    value = read(path.read_text("utf-8"))
    long = shorthand.expand(value, "m.yaml").value
    kept = copy.deepcopy(long)
    again = shorthand.expand({**long, "shorthand": True}, "m.yaml")
    assert again.value == {**kept, "shorthand": True}
    assert not [each for each in again.faults if "type of its own" not in each.message]
    assert again.origins == {}
    assert shorthand.expand(shorten_manifest(long), "m.yaml").value == {**kept, "shorthand": True}


def shorten_manifest(value: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with its schemas as short as shorthand makes them."""
    short = {**value, "shorthand": True, "tools": [shorten_tool(tool) for tool in value.get("tools", ())]}
    if "schemas" in value:
        short["schemas"] = {name: shorten(schema) for name, schema in value["schemas"].items()}
    return short if "tools" in value else {key: child for key, child in short.items() if key != "tools"}


def shorten_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {key: shorten(child) if key in {"inputSchema", "outputSchema"} else child for key, child in tool.items()}


def shorten(schema: Any) -> Any:
    """Return a schema with `fields` instead of properties, if the order and the required properties permit it."""
    if not isinstance(schema, dict) or "$schema" in schema:
        return schema
    if list(schema)[:3] != ["type", "properties", "required"] or schema["type"] != "object":
        return {key: shorten(child) if key == "items" else child for key, child in schema.items()}
    properties, required = schema["properties"], schema["required"]
    if [name for name in properties if name in required] != required:
        return schema
    fields = {name if name in required else f"{name}?": shorten(child) for name, child in properties.items()}
    rest = {key: child for key, child in schema.items() if key not in {"type", "properties", "required"}}
    return {"fields": fields, **rest}
