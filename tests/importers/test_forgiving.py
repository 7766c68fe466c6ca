"""Slightly invalid JSON or YAML 1.2 documents and saved lists: lenient parsing, and rejected input."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from stubwright.commands.importing import import_
from stubwright.compile.syntax import yamltext
from stubwright.importers.acceptance import ImportResult
from stubwright.importers.document_reader import DocumentError
from stubwright.importers.openapi import manifest
from stubwright.importers.openapi.documents import Documents
from stubwright.importers.openapi.naming import Selection
from stubwright.project.files import disk

HEAD = """\
openapi: 3.1.0
info: {title: Sample, version: "1"}
security: []
servers: [{url: "https://api.example.com"}]
"""


def imported(folder: Path, text: str, name: str = "api.yaml") -> ImportResult:
    (folder / name).write_text(text)
    return manifest.make_manifest(Documents(str(folder / name), disk.Disk()), Selection())


def value(folder: Path, text: str, name: str = "api.yaml") -> Any:
    (folder / name).write_text(text)
    return Documents(str(folder / name), disk.Disk()).root.value


def test_merge_keys_are_merged(tmp_path: Path) -> None:
    text = f"""\
{HEAD}x-base: &base {{responses: {{}}, summary: Common., x: {{y: 1}}}}
x-more: &more {{summary: More., description: D.}}
paths:
  /a: {{get: {{<<: *base, operationId: a, summary: Own.}}}}
  /b: {{get: {{operationId: b, <<: [*more, *base]}}}}
"""
    made = imported(tmp_path, text)
    assert [tool["name"] for tool in made.manifest["tools"]] == ["a", "b"]
    told = "`api.yaml` has merge keys (`<<`), which are not part of YAML 1.2; they were expanded: line 8, line 9"
    assert made.notes[0] == told
    paths = value(tmp_path, text)["paths"]
    assert paths["/a"]["get"] == {"responses": {}, "summary": "Own.", "x": {"y": 1}, "operationId": "a"}
    assert paths["/b"]["get"]["summary"] == "More."


def test_merge_keys_without_anchors(tmp_path: Path) -> None:
    assert value(tmp_path, f"{HEAD}paths: {{}}\nx: {{<<: {{a: 1}}, '<': 2}}\n")["x"] == {"a": 1, "<": 2}


def test_merge_keys_of_what_was_merged(tmp_path: Path) -> None:
    text = f"{HEAD}x-a: &a {{one: 1}}\nx-b: &b {{<<: *a, two: 2}}\nx-c: {{<<: *b, <<: *b, one: 3}}\npaths: {{}}\n"
    assert value(tmp_path, text)["x-c"] == {"one": 3, "two": 2}


@pytest.mark.parametrize(("name", "line"), [("api.yaml", 3), ("api.json", 4)])
def test_the_last_of_equal_keys_counts(name: str, line: int, tmp_path: Path) -> None:
    text = '{"openapi": "3.1.0",\n"info": {"title": "S", "version": "1"}, "servers": [{"url": "https://a.example"}],\n'
    text += '"paths": {"/x": {"get": {"operationId": "one", "responses": {}},\n'
    text += '"get": {"operationId": "two", "responses": {}}}}}\n'
    if name == "api.yaml":
        text = f"{HEAD}paths: {{/x: {{get: {{operationId: one, responses: {{}}}}, get: {{operationId: two}}}}}}\n"
        line = 5
    made = imported(tmp_path, text, name)
    assert [tool["name"] for tool in made.manifest["tools"]] == ["two"]
    assert made.notes[0] == f"`{name}` has duplicate keys, and the last one was used: `get` on line {line}"


FLOW = "{openapi: 3.1.0, info: {title: Sample, version: '1'},\n paths: {/x: {}}, x: [a, b,]}\n"


@pytest.mark.parametrize("name", ["api.yaml", "api", "API.YML"])
@pytest.mark.parametrize("head", ["", "\n", "# flow\n", "---\n"])
def test_a_flow_mapping_is_yaml(name: str, head: str, tmp_path: Path) -> None:
    assert value(tmp_path, head + FLOW, name)["x"] == ["a", "b"]


@pytest.mark.parametrize(("name", "is_json"), [("api.yaml", False), ("api", True), ("api.json", True)])
def test_a_text_in_braces_that_is_neither_is_reported_as_its_name_says(
    name: str, is_json: bool, tmp_path: Path
) -> None:
    with pytest.raises(DocumentError) as caught:
        value(tmp_path, '{"openapi": "3.1.0" "x": 1}', name)
    assert (str(caught.value).startswith("expected a comma")) is is_json


def test_many_equal_keys_are_not_all_told(tmp_path: Path) -> None:
    made = imported(tmp_path, f"{HEAD}paths: {{}}\nx: {{{', '.join(['a: 1'] * 14)}}}\n")
    assert any(note.endswith("`a` on line 6, `a` on line 6, and 3 more") for note in made.notes)


def test_examples_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    text = f"""\
{HEAD}paths: {{}}
components:
  schemas:
    A: {{type: number, example: .nan, examples: [1, -.inf, 2]}}
    example: {{type: object, example: {{a: [.INF]}}, properties: {{example: {{type: number, example: .NaN}}}}}}
  parameters:
    b: {{name: b, in: query, examples: {{one: {{value: .inf}}, two: {{value: 2}}}}}}
"""
    components = value(tmp_path, text)["components"]
    assert components["schemas"] == {
        "A": {"type": "number", "examples": [1, 2]},
        "example": {"type": "object", "properties": {"example": {"type": "number"}}},
    }
    assert components["parameters"]["b"]["examples"] == {"two": {"value": 2}}
    told = (
        "`api.yaml` has examples that JSON cannot represent; they were omitted: line 8, line 8, line 9, line 9, line 11"
    )
    assert told in imported(tmp_path, text).notes
    json = '{"openapi": "3.1.0", "info": {}, "paths": {}, "x": {"example": NaN, "examples": [-Infinity, 1]}}'
    assert value(tmp_path, json, "api.json")["x"] == {"examples": [1]}


@pytest.mark.parametrize(
    "line",
    [
        "x: {maximum: .inf}",
        "x: {default: .nan, example: .nan}",
        "components: {schemas: {A: {properties: {example: {maximum: .inf}}}}}",
        "x: {<<: 1}",
        "x: {<<: [{a: 1}, 2]}",
        "x: {a: 1, a: 2, b: !!binary aa}",
        "x: {a: 1, a: 2, b: 1e999}",
    ],
)
def test_what_is_not_forgiven(line: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as refused:
        value(tmp_path, f"{HEAD}paths: {{}}\n{line}\n")
    assert refused.value.diagnostics


def test_other_files_of_the_document_are_forgiven_too(tmp_path: Path) -> None:
    (tmp_path / "parts.yaml").write_text("get: {operationId: one}\nget: {operationId: two, responses: {}}\n")
    made = imported(tmp_path, f"{HEAD}paths: {{/x: {{$ref: parts.yaml}}}}\n")
    assert [tool["name"] for tool in made.manifest["tools"]] == ["two"]
    assert made.notes[0].startswith("`parts.yaml` has duplicate keys")


def listed(folder: Path, tools: str, head: str = "") -> ImportResult:
    """What `import tools` makes of a saved list."""
    (folder / "saved.json").write_text(f'{head}{{"tools": [\n{tools}\n]}}', encoding="utf-8")
    arguments = argparse.Namespace(file=str(folder / "saved.json"), name=None, prefix="")
    return import_.prepare_saved_list(arguments)()


def named(name: str, properties: str) -> str:
    return f'{{"name": "{name}", "description": "D.", "inputSchema": {{"type": "object", "properties": {properties}}}}}'


def test_the_last_of_equal_keys_counts_in_a_saved_list(tmp_path: Path) -> None:
    text = '{"name": "a",\n"name": "b", "description": "D.", "description": "E.", "inputSchema": {"type": "object"}}'
    made = listed(tmp_path, text)
    assert [(tool["name"], tool["description"]) for tool in made.manifest["tools"]] == [("b", "E.")]
    path = tmp_path / "saved.json"
    told = f"`{path}` has duplicate keys, and the last one was used: `name` on line 3"
    assert made.notes[0] == f"{told}, `description` on line 3"


def test_examples_of_a_saved_list_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    made = listed(tmp_path, named("a", '{"n": {"type": "number", "examples": [1, NaN, -Infinity]}}'))
    (tool,) = made.manifest["tools"]
    assert tool["inputSchema"]["properties"] == {"n": {"type": "number", "examples": [1]}}
    path = tmp_path / "saved.json"
    assert made.notes[0] == f"`{path}` has examples that JSON cannot represent; they were omitted: line 2, line 2"


@pytest.mark.parametrize("keyword", ["properties", "$defs", "patternProperties"])
def test_what_is_only_called_an_example_is_no_example(keyword: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as refused:
        listed(tmp_path, named("a", f'{{"n": {{"{keyword}": {{"example": {{"maximum": Infinity}}}}}}}}'))
    assert refused.value.diagnostics[0].code == "SW007"


@pytest.mark.parametrize("head", ["", "\ufeff"])
@pytest.mark.parametrize(
    "odd",
    ['{"n": {"maximum": 1e999}}', '{"n": ' + '{"not": ' * 210 + "{}" + "}" * 211, '{"n": {"title": 1}}'],
)
def test_a_tool_that_is_odd_costs_no_other_one(odd: str, head: str, tmp_path: Path) -> None:
    twice = '{"a": {"title": "A", "title": "B"}, "s": {"title": "\\ud83d"}}'
    made = listed(tmp_path, f"{named('a', twice)},\n{named('b', odd)}", head)
    assert [tool["name"] for tool in made.manifest["tools"]] == ["a"]
    assert made.manifest["tools"][0]["inputSchema"]["properties"] == {"a": {"title": "B"}, "s": {"title": "\ufffd"}}
    assert "`title` on line 2" in made.notes[0]
    assert any(note.startswith("tool `b` was omitted") for note in made.notes)


@pytest.mark.parametrize("value", ["NaN", "9" * 5000])
def test_a_saved_list_is_refused_as_a_whole_where_a_value_cannot_be_read(value: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as refused:
        listed(tmp_path, named("a", f'{{"n": {{"title": "A", "title": "B", "maximum": {value}}}}}'))
    assert {diagnostic.code for diagnostic in refused.value.diagnostics} == {"SW005", "SW007"}


@pytest.mark.parametrize("line", ["x: {a: 1, a: 2}", "x: {<<: {a: 1}}", "x: .nan"])
def test_manifests_are_read_as_strictly_as_before(line: str) -> None:
    read, problems = yamltext.parse(f"stubwright: 1\n{line}\n")
    assert read is None
    assert problems
