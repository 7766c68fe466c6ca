"""Rules: valid input, and results at scale; the golden cases in `cases/` pin their messages."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema_rs import validator_for

import dependencies as distributions
import packages
import stubwright_runtime
import suite
from amounts import choose
from corpus import VARIABLE
from memory import load, shown
from stubwright import dependencies, naming
from stubwright.codegen.pages.exports import ALWAYS, OF_HANDLES, OF_PAGES
from stubwright.commands.shared import comparison
from stubwright.compile import rules
from stubwright.compile.resolve import resolve
from stubwright.compile.rules import lint
from stubwright.diagnostics import CODES, Diagnostic, Place
from stubwright.diagnostics.suggestions import is_slip
from stubwright.jsonschema import dialects, instances, references

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stubwright.compile.source import Bundle
    from stubwright.jsonschema.dialects import Dialect

NONE: dict[str, Any] = {"properties": {}}
HEAD = "stubwright: 1\nserver: {name: weather, version: 1.0.0}\n"


def bundle_of(value: Mapping[str, Any], **more: str) -> Bundle:
    manifest = {"stubwright": 1, "server": {"name": "weather", "version": "1.0.0"}, **value}
    return load("manifest.json", **{"manifest.json": json.dumps(manifest), **more})


def tool(schema: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "get", "description": "Gets.", "inputSchema": {"type": "object", **schema}, **more}


def codes(bundle: Bundle) -> list[str]:
    return [found.code for found in rules.check(resolve(bundle))]


# Names that packages need


def test_every_export_is_a_name_that_no_model_may_take() -> None:
    own = {"TOOLS", "asgi_app", "build_server"}
    yielding = {"ConnectError", "Forbidden", "HandlerCall", "NotFound", "NotMCP", "Proceed", "ProjectionError"}
    yielding |= {
        "AccessToken",
        "MCPError",
        "ServerExited",
        "ServerNotFound",
        "SessionLost",
        "TaskEngine",
        "TaskWork",
        "TokenVerifier",
        "ToolContent",
        "Unauthorized",
        "Unreachable",
        "UrlElicitationRequired",
        "as_tools",
    }
    yielding |= {"Skill", "SkillError", "SkillFile", "get_skill", "list_skills", "read_skill"}
    of_all = {*dir(stubwright_runtime)} - {"IncompatibleRuntimeError"} - yielding
    assert (ALWAYS | OF_HANDLES | OF_PAGES) - own == of_all
    assert own <= ALWAYS


@pytest.mark.parametrize("name", sorted(ALWAYS | OF_HANDLES))
def test_no_shared_schema_is_called_like_an_export(name: str) -> None:
    state = {"type": "object", "properties": {"a": {"type": "string"}}}
    handles = {"thing": {"state": {"$ref": "#/schemas/Thing"}, "ttl": "1h"}}
    value = {"tools": [tool({})], "handles": handles, "schemas": {"Thing": state, name: state}}
    class_name = naming.name_shared_class(naming.name_shared(name))
    expected = ["SW212"] if class_name in ALWAYS | OF_HANDLES else []
    assert [code for code in codes(bundle_of(value)) if code == "SW212"] == expected


@pytest.mark.long
def test_what_models_import_can_be_the_name_of_a_shared_schema(tmp_path: Path) -> None:
    schemas = {
        name: {"type": "object", "properties": {"inner": {"type": "object", "properties": {"a": {"enum": [1, None]}}}}}
        for name in sorted(naming.MODEL_NAMES)
    }
    properties = {f"p{index}": {"$ref": f"#/schemas/{name}"} for index, name in enumerate(schemas)}
    assert codes(bundle_of({"tools": [tool({"properties": properties})], "schemas": schemas})) == []
    value = packages.manifest([packages.tool("get", properties)], schemas=schemas)
    with packages.imported(tmp_path, packages.generate(tmp_path, value)) as package:
        given = package.GetInput.model_validate({each: {"inner": {"a": 1}} for each in properties})
        classes = {name: naming.name_shared_class(naming.name_shared(name)) for name in schemas}
        for (name, class_name), attribute in zip(classes.items(), properties, strict=True):
            assert type(getattr(given, attribute)) is getattr(package, class_name), name
            assert getattr(given, attribute).inner.a == 1
    assert classes["Final"] == "FinalModel"
    assert classes["Map"] == "MapModel"
    assert naming.MODEL_NAMES.isdisjoint(classes.values())


def _code_of(package: str) -> list[str]:
    return [code for code in codes(bundle_of({"python": {"package": package}})) if code == "SW215"]


@pytest.mark.parametrize(
    "package",
    [
        *("cryptography", "jwt", "mcp", "opentelemetry", "pydantic_core", "redis", "stubwright_runtime"),
        *("importlib_metadata", "sniffio"),  # needed by the oldest supported versions alone
    ],
)
def test_a_package_hides_nothing_that_it_needs(package: str) -> None:
    assert _code_of(package) == ["SW215"]


def test_a_package_may_be_called_like_what_it_does_not_need() -> None:
    assert _code_of("docket") == []


def test_the_dependencies_are_those_of_the_runtime() -> None:
    written = json.loads(dependencies.FILE.read_text())
    needed = distributions.list_modules()
    assert written == needed, "run `python tests/support/dependencies.py`"


def test_whatever_the_runtime_imports_is_a_dependency() -> None:
    [root] = stubwright_runtime.__path__
    imported = set()
    for path in Path(root).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    assert {"cryptography", "mcp", "pydantic", "redis"} <= imported
    frameworks = {"agents", "langchain_core", "pydantic_ai"}  # of users who ask for tools of theirs
    assert imported - sys.stdlib_module_names - {"_typeshed"} - frameworks <= dependencies.list_modules()


def test_places_of_overlays_are_in_the_overlay() -> None:
    bundle = load(
        "m.yaml",
        **{
            "m.yaml": HEAD + "include: [{path: t.json, prefix: gh_}]\n"
            "overlay: {tools: {gh_get: {examples: [{input: {a: 1}}]}}}\n",
            "t.json": json.dumps({"tools": [tool({"properties": {"a": {"type": "string"}}})]}),
        },
    )
    assert shown(bundle, rules.check(resolve(bundle))) == [
        (
            "m.yaml:4:51 SW240 the example's input is not valid under the `inputSchema` of `gh_get`: "
            "a: expected a string, got 1 (change the example or the schema)"
        )
    ]


def test_a_fragment_finds_its_own_schemas_and_tools() -> None:
    bundle = load(
        "specs/m.yaml",
        **{
            "specs/m.yaml": HEAD + "include: [{path: gh/f.yaml, prefix: gh_}]\nschemas: {A: {type: string}}\n",
            "specs/gh/f.yaml": """\
                schemas: {B: {$ref: "../common.yaml#/schemas/C"}}
                overlay: {tools: {y: {deprecated: {use: x}}}}
                tools:
                  - name: x
                    description: d
                    inputSchema: {type: object, properties: {a: {$ref: "#/schemas/B"}}}
                  - {name: y, description: d, inputSchema: {type: object, properties: {}}}
                """,
            "specs/common.yaml": "schemas: {C: {type: string}, Unused: {$ref: '#/schemas/Nope'}}\n",
        },
    )
    assert rules.check(resolve(bundle)) == []


def test_ignored_warnings_of_any_stage_are_left_out() -> None:
    bundle = bundle_of({"lint": {"ignore": ["SW301"]}, "tools": [tool({}, stubwright={"lint": {"ignore": ["SW320"]}})]})
    anywhere = Diagnostic("SW301", "nothing", Place("manifest.json", ("include",)))
    in_tool = Diagnostic("SW320", "a default", Place("manifest.json", ("tools", 0, "inputSchema", "default")))
    elsewhere = Diagnostic("SW320", "a default", Place("manifest.json", ("schemas", "A", "default")))
    error = Diagnostic("SW220", "a reference", Place("manifest.json", ("tools", 0)))
    assert lint.suppress(resolve(bundle), [anywhere, in_tool, elsewhere, error]) == [elsewhere, error]


@pytest.mark.parametrize("support", ["optional", "required"])
def test_only_tools_that_run_as_tasks_say_how(support: str) -> None:
    of_a_task = {
        "task": {"ttl": "1h"},
        "ask": {"who": {"message": "?", "before": "task", "schema": {"type": "object", "properties": {}}}},
    }
    assert codes(bundle_of({"tools": [tool(NONE, execution={"taskSupport": support}, stubwright=of_a_task)]})) == []
    for never in ({}, {"execution": {"taskSupport": "forbidden"}}, {"execution": None}):
        assert codes(bundle_of({"tools": [tool(NONE, **never, stubwright=of_a_task)]})) == ["SW259", "SW259"]


@pytest.mark.parametrize("dialect", dialects.DIALECTS, ids=lambda dialect: dialect.name)
def test_bounds_that_leave_one_value_are_fine(dialect: Dialect) -> None:
    schema = {"$schema": dialect.uri, "properties": {"a": {"minimum": 1, "maximum": 1, "minLength": 2, "maxLength": 2}}}
    assert codes(bundle_of({"tools": [tool(schema)]})) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"required": ["nme"]},
        {"properties": {"name": {}}, "required": ["other"]},
        {"properties": {"name": {}, "names": {}}, "required": ["name", "names"]},
        {"properties": {"name": {}, "nme": {}}, "anyOf": [{"properties": {"name": {}}, "required": ["nme"]}]},
        {"properties": {"name": {}}, "required": ["nme"], "allOf": [{"properties": {"nme": {}}}]},
        {"properties": {}, "not": {"required": ["a"], "additionalProperties": False}},
        {"patternProperties": {"^n": {}}, "required": ["nme"], "additionalProperties": False},
    ],
)
def test_required_properties_that_may_be_meant(schema: Mapping[str, Any]) -> None:
    assert not {"SW322", "SW323"} & {*codes(bundle_of({"tools": [tool(schema)]}))}


@pytest.mark.parametrize("dialect", dialects.DIALECTS, ids=lambda dialect: dialect.name)
def test_a_schema_may_refer_to_the_meta_schema_of_its_dialect(dialect: Dialect) -> None:
    schema = {"$schema": dialect.uri, "properties": {"a": {"$ref": dialect.uri}}}
    assert codes(bundle_of({"tools": [tool(schema)]})) == []


@pytest.mark.parametrize("dialect", dialects.DIALECTS, ids=lambda dialect: dialect.name)
def test_defaults_are_judged_in_their_dialect(dialect: Dialect) -> None:
    schema: dict[str, Any] = {
        "$schema": dialect.uri,
        "properties": {"a": {"items": [{"$ref": f"#/{dialect.defs}/n"}], "default": [0]}},
        dialect.defs: {"n": {"minimum": 0, "exclusiveMinimum": True if dialect is dialects.DRAFT_4 else 0}},
    }
    if dialect is dialects.DRAFT_2020_12:
        schema["properties"]["a"]["prefixItems"] = schema["properties"]["a"].pop("items")
    assert codes(bundle_of({"tools": [tool(schema)]})) == ["SW320"]


def test_a_default_below_an_identified_root_finds_its_references() -> None:
    schema = {
        "$id": "https://example.com/get",
        "properties": {"a": {"$ref": "#/$defs/n", "default": 0}, "b": {"$ref": "get#/$defs/n", "default": 1}},
        "$defs": {"n": {"minimum": 1}},
    }
    found = rules.check(resolve(bundle_of({"tools": [tool(schema)]})))
    assert [one.at for one in found] == [
        Place("manifest.json", ("tools", 0, "inputSchema", "properties", "a", "default"))
    ]


@pytest.mark.parametrize("draft", suite.DRAFTS)
def test_references_resolve_where_the_validator_resolves_them(corpus: Path, draft: str) -> None:
    judged = 0
    dialect = suite.DRAFTS[draft]
    for path in suite.files(corpus, draft, "**/*.json"):
        for group in json.loads(path.read_text("utf-8")):
            schema = group["schema"]
            if dialects.find_dialect(schema, dialect) is None or not isinstance(schema, dict):
                continue
            found = references.Outline(Place("m"), schema, dialect, references.Folder("", {"m": ()}))
            broken = [one.text for one in found.references if isinstance(one.target, references.BrokenReference)]
            try:
                validator_for({"$schema": dialect.uri} | schema, offline=True)
            except ValueError:
                assert broken, f"{path.name}: {group['description']}"
            else:
                assert broken == [], f"{path.name}: {group['description']}"
            judged += 1
    assert judged > 150


def test_tools_of_public_servers_have_no_false_errors(corpus: Path) -> None:
    errors = []
    wrong = "livemcpbench--pdf-reader-mcp"  # `exclusiveMinimum: true` in 2020-12, which no meta-schema allows
    every = choose(VARIABLE, 6, 1, 1)
    for number, path in enumerate(sorted((corpus / "tools").glob("*.json"))):
        if number % every and path.stem != wrong:
            continue
        saved = json.dumps({"tools": json.loads(path.read_text("utf-8"))["tools"]})
        bundle = bundle_of({"include": ["saved.json"]}, **{"saved.json": saved})
        errors += [(path.stem, found.code) for found in rules.check(resolve(bundle)) if found.severity == "error"]
    assert errors == [(wrong, "SW228")]


def test_rules_that_are_left_out_where_only_errors_count_never_give_one() -> None:
    for rule in rules._SLOW_WARNINGS:
        found = re.findall(r'"(SW\d+)"', inspect.getsource(rule))
        assert {CODES[code].severity for code in found} == {"warning"}, rule.__name__


def test_no_values_are_tried_where_only_errors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """`diff` and `verify` compile both versions, and show no warnings; to look for these took half of that time."""
    monkeypatch.setattr(instances, "make", None)
    wrong = {"properties": {"a": {"type": "string", "default": 1}}, "required": ["a"]}
    resolved = resolve(bundle_of({"tools": [tool(wrong)]}))
    with pytest.raises(TypeError, match="not callable"):
        rules.check(resolved)
    assert rules.check(resolved, errors_only=True) == []
    value = {"stubwright": 1, "server": {"name": "desk", "version": "1.0.0"}, "tools": [tool(wrong)]}
    version = comparison.make_version("desk", value)
    assert version.manifest is not None
    assert version.diagnostics == []


@pytest.mark.long
def test_a_thousand_tools_are_checked_within_two_seconds() -> None:
    properties = {f"p{index}": {"type": "string", "description": "x" * 80, "default": ""} for index in range(12)}
    tools = [tool({"properties": properties}) | {"name": f"tool_{index}"} for index in range(1_000)]
    bundle = bundle_of({"tools": tools})
    start = time.process_time()
    assert rules.check(resolve(bundle)) == []
    assert time.process_time() - start < 2


def test_a_chain_of_references_as_long_as_the_stack_is_deep_is_followed() -> None:
    length = sys.getrecursionlimit() * 2
    chain = {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(length)}
    bundle = bundle_of({"tools": [tool({"properties": {}, "$defs": {**chain, f"d{length}": {"$ref": "#/$defs/d0"}}})]})
    assert codes(bundle) == ["SW223"]


@pytest.mark.parametrize(
    ("word", "other", "slip"),
    [
        ("staf", "staff", True),
        ("shop:satff", "shop:staff", True),
        ("Staff", "staff", True),
        ("notes.read", "notes:read", True),
        ("note:read", "notes:read", True),
        ("documents:raed", "documents:read", True),
        ("invioces:read", "invoices:read", True),
        ("https://api.example.com/auth/calender.readonly", "https://api.example.com/auth/calendar.readonly", True),
        ("staff", "staff", False),
        ("notes:read", "notes:write", False),
        ("books:import", "books:export", False),
        ("level1", "level2", False),
        ("api:v1:read", "api:v2:read", False),
        ("prices:increase", "prices:decrease", False),
        ("notes:get", "notes:set", False),
        ("notes:read", "notes:read:all", False),
        ("admin", "admin:org", False),
        ("read", "reader", False),
    ],
)
def test_only_words_that_nobody_tells_apart_on_purpose_are_slips(word: str, other: str, *, slip: bool) -> None:
    assert is_slip(word, other) is slip
    assert is_slip(other, word) is slip


def spelled(*scopes: list[str], **more: Any) -> list[tuple[str, str | None]]:
    tools = [
        {
            "name": f"t{index}",
            "description": "d",
            "inputSchema": {"type": "object"},
            "stubwright": {"policy": {"scopes": each}},
        }
        for index, each in enumerate(scopes)
    ]
    found = rules.check(resolve(bundle_of({"tools": tools, **more})))
    return [(each.message, each.help) for each in found if each.code == "SW343"]


def test_a_scope_that_is_named_once_is_compared_with_those_that_are_sure() -> None:
    unknown = "the scope `{}` appears nowhere else in this manifest"
    assert spelled(["staff"], ["staf"]) == [(unknown.format("staf"), "did you mean `staff`?")]
    assert spelled(["staf"], ["staff"], ["staff"]) == [(unknown.format("staf"), "did you mean `staff`?")]
    assert spelled(["staff"], ["staff"], ["staf"], ["staf"]) == []
    auth = {"issuer": "https://auth.example.com", "audience": "https://a.example.com", "requiredScopes": ["staff"]}
    assert spelled(["staf"], auth=auth) == [(unknown.format("staf"), "did you mean `staff`?")]
    assert spelled(["staff"], ["staff"], auth={**auth, "requiredScopes": ["staf"]}) == [
        (unknown.format("staf"), "did you mean `staff`?")
    ]
    assert spelled(["staf"], policy={"scopes": ["staff"]}, auth=auth) == [
        (unknown.format("staf"), "did you mean `staff`?")
    ]
    assert spelled(["db:read"], ["db:write"], ["level1"], ["level2"]) == []
