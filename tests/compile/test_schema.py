"""The structure of manifests and schemas: errors, their locations, and valid input."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import amounts
import suite
from memory import Files
from packages import manifest
from stubwright import package_data
from stubwright.compile import pipeline, source, structure
from stubwright.compile import validate as schema
from stubwright.diagnostics import CODES, Diagnostic, Place, printers
from stubwright.jsonschema import metaschema
from stubwright.jsonschema.dialects import DIALECTS, Dialect

SCHEMA = json.loads(package_data.MANIFEST_SCHEMA.read_text("utf-8"))
TYPES = "types are `string`, `number`, `integer`, `boolean`, `object`, `array` or `null`"
HEAD = "stubwright: 1\nserver: {name: weather, version: 1.0.0}\n"

WHOLE = """
stubwright: 1
x-ours: [free]
server:
  name: weather
  version: 1.2.0
  title: Weather
  instructions: Ask for one place at a time.
  websiteUrl: https://example.com
  icons: [{src: "https://example.com/i.png", mimeType: image/png, sizes: [48x48], theme: dark}]
  capabilities: {resources: true}
python: {package: weather_mcp, handlers: "weather:Weather"}
include: []
schemas: {Place: {type: string, minLength: 1}, Any: true}
tools:
  - name: get_weather
    title: null
    description: Get current weather information for a location
    inputSchema:
      type: object
      properties: {location: {$ref: "#/schemas/Place"}, units: {enum: [metric, imperial], default: metric}}
      required: [location]
      additionalProperties: false
    outputSchema: {type: object}
    annotations: {readOnlyHint: true, openWorldHint: true, destructiveHint: null}
    icons: []
    execution: {taskSupport: optional}
    _meta: {anything: [1]}
    stubwright:
      policy: {timeout: 10s, rateLimit: 60/minute, scopes: [weather:read], concurrency: 8, maxResultBytes: 1MiB,
               maxArgumentBytes: 64KiB, confirm: false, redact: [/api_key]}
      ask:
        confirm_place: {message: Which Paris?, schema: {type: object, properties: {a: {type: string}}}, before: task}
        sign_in: {mode: url, message: Please sign in}
      examples:
        - {name: plain, input: {location: Paris}, output: {temperature: 22.5}}
        - {input: {}, output: null}
      http: {method: GET, url: "https://api.example.com/v1/{location}"}
      pythonName: get_weather
      deprecated: {since: 1.1.0, use: get_forecast}
      lint: {ignore: [SW310]}
      x-note: mine
resources: [{uri: "file:///readme.md", name: readme, mimeType: text/markdown, stubwright: {file: ./readme.md}}]
resourceTemplates: [{uriTemplate: "weather://{city}/now", name: current, stubwright: {complete: {city: [Paris, Oslo]}}}]
prompts:
  - name: code_review
    arguments: [{name: code, required: true}]
    stubwright: {messages: [{role: user, text: "Review: {{code}}"}], complete: {language: [python, go]}}
overlay:
  tools: {gh_create_issue: {policy: {confirm: {fallback: allow}}}}
handles: {basket: {state: {type: object}, ttl: 7d, idle: 24h, most: 20}}
auth: {issuer: https://auth.example.com, audience: https://mcp.example.com, jwksUri: "https://a", requiredScopes: []}
policy: {timeout: 30s, onStateLoss: closed, maxResultBytes: 1000}
formats: annotate
cache: {ttl: 5m, scope: public}
pageSize: 100
wire: {refs: bundled}
protocol: {min: 2025-06-18}
emit: [server, client]
lint: {ignore: [SW301]}
diff: {ignore: [SW501]}
"""


def check(text: str, **files: str) -> list[Diagnostic]:
    bundle, found = source.load("m.yaml", Files(**{"m.yaml": text}, **files))
    assert found == []
    assert bundle is not None
    return schema.sort_diagnostics(bundle, (*schema.validate(bundle), *schema.validate_schemas(bundle)))


def validate(value: Any) -> list[Diagnostic]:
    """What is wrong with a manifest that is given as its value."""
    text = json.dumps(value)
    bundle, found = source.load("m.json", Files(**{"m.json": text}))
    assert bundle is not None
    diagnostics = found + schema.sort_diagnostics(bundle, (*schema.validate(bundle), *schema.validate_schemas(bundle)))
    assert printers.text.render(diagnostics, bundle.documents, color=False) or not diagnostics
    return diagnostics


def codes(found: list[Diagnostic]) -> list[str]:
    return [diagnostic.code for diagnostic in found]


def rules(here: Any) -> Iterator[dict[str, Any]]:
    """Each schema in the manifest's schema."""
    if isinstance(here, dict):
        yield here
        for keyword, value in here.items():
            if keyword in ("properties", "$defs"):
                for child in value.values():
                    yield from rules(child)
            elif keyword in ("items", "additionalProperties", "propertyNames", "if", "else"):
                yield from rules(value)


def test_everything_that_a_manifest_may_have() -> None:
    assert check(WHOLE, **{"readme.md": "# Read me\n"}) == []


def test_the_manifest_schema_is_one() -> None:
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert SCHEMA["properties"].keys() > structure.FRAGMENT_KEYS


def test_the_manifest_schema_tells_what_things_are() -> None:
    for rule in rules(SCHEMA):
        if ("properties" in rule and "type" in rule) or rule.get("type") == "array":
            assert rule["title"], rule
        if "pattern" in rule:
            assert " such as `" in rule["title"], rule
            assert rule["description"].endswith("."), rule
        if "properties" in rule and "additionalProperties" in rule:
            assert rule["patternProperties"] == {"^x-": True}, rule
    for name, rule in SCHEMA["properties"].items():
        target = SCHEMA["$defs"][rule["$ref"].rpartition("/")[2]] if "$ref" in rule else rule
        assert (rule.get("description") or target["description"]).endswith("."), name


def test_the_examples_of_the_manifest_schema_are_valid() -> None:
    shown = 0
    for rule in rules(SCHEMA):
        validator = jsonschema_rs.Draft202012Validator({**rule, "$defs": SCHEMA["$defs"]})
        for example in [*rule.get("examples", []), *([rule["default"]] if "default" in rule else [])]:
            assert validator.is_valid(example), (rule, example)
            shown += 1
    assert shown > 50


ANYTHING: list[Any] = [None, True, 7, 1.5, "", "text", [], [[]], [{}], {}, {"a": []}, ["a", "a"]]
IN_SCHEMAS: list[Any] = [None, True, 7, "", "#", "#/$defs/Gone", "x y", [], [{}], {}, {"a": 1}]


@pytest.mark.parametrize("other", amounts.sample(ANYTHING, 2))
def test_anything_may_stand_anywhere(other: Any) -> None:
    """No value at any place of a manifest is more than diagnostics, and an object for a list never passes."""
    bundle, _ = source.load("m.yaml", Files(**{"m.yaml": WHOLE}))
    assert bundle is not None
    whole = bundle.documents["m.yaml"].value

    def places(here: Any, pointer: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
        yield pointer
        steps: Any = here.items() if isinstance(here, dict) else enumerate(here) if isinstance(here, list) else ()
        for step, child in steps:
            yield from places(child, (*pointer, step))

    for pointer in places(whole):
        value: Any = copy.deepcopy(whole)
        here = value
        for step in pointer[:-1]:
            here = here[step]
        if pointer:
            here[pointer[-1]] = other
        found = validate(value if pointer else other)
        if len(pointer) == 1 and pointer != ("x-ours",) and not isinstance(other, type(whole[pointer[0]])):
            assert found, pointer


@pytest.mark.parametrize(
    ("dialect", "other"),
    [
        case if another % 2 == 0 and (one + another) % len(DIALECTS) == 0 else amounts.mark_long(case)
        for one, dialect in enumerate(DIALECTS)
        for another, other in enumerate(IN_SCHEMAS)
        for case in [pytest.param(dialect, other, id=f"{dialect.name}-{another}")]
    ],
)
def test_anything_may_stand_anywhere_in_a_schema(dialect: Dialect, other: Any) -> None:
    """What is put together before schemas are judged takes wrong ones, too."""
    own = {"$ref": "#/$defs/A", "not": {"$ref": "other.json#/schemas/A"}}
    for keyword in sorted(dialect.keywords - {"$schema", "type", "properties", "$defs"}):
        root = {"$schema": dialect.uri, "type": "object", keyword: other, "$defs": {"A": own}}
        root["properties"] = {"p": {**own, keyword: other}, "q": {keyword: other}}
        text = json.dumps(manifest([{"name": "a", "description": "A.", "inputSchema": root}]))
        files = Files(**{"m.json": text, "other.json": json.dumps({"schemas": {"A": {**own, keyword: other}}})})
        checked = pipeline.compile_manifest("m.json", files)
        assert checked.manifest is None
        assert printers.text.render(list(checked.diagnostics), checked.documents, color=False)


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    found = check(
        HEAD
        + "emit: [x]\n"
        + "tools:\n"
        + "  - {name: a, inputSchema: {type: object, properties: {b: {type: strng, minlength: 1}}}}\n"
        + "  - {name: 3}\n"
        + "pageSize: 0\n"
    )
    assert [(one.code, one.message) for one in found] == [
        ("SW104", "expected `server`, `client` or `typescript`, found the string `x`"),
        ("SW203", "`strng` is not a JSON Schema type"),
        ("SW205", "`minlength` is not a JSON Schema keyword"),
        ("SW101", "a tool needs `inputSchema`"),
        ("SW102", "expected a string, found the number `3`"),
        ("SW105", "expected a whole number, 1 or more, found the number `0`"),
    ]
    assert found[1].at == Place("m.yaml", ("tools", 0, "inputSchema", "properties", "b", "type"))
    assert found[1].help == "did you mean `string`?"
    assert found[2].at == Place("m.yaml", ("tools", 0, "inputSchema", "properties", "b", "minlength"), "key")
    assert found[2].help == "did you mean `minLength`?"


def test_a_file_that_is_included_twice_is_checked_once() -> None:
    include = "include: [{path: a.yaml, prefix: x_}, {path: a.yaml, prefix: y_}]\n"
    assert codes(check(HEAD + include, **{"a.yaml": "tools: [{name: 3, inputSchema: {type: object}}]"})) == ["SW102"]


def test_included_files() -> None:
    found = check(
        HEAD + "include: [a.yaml, b.json]\nschemas: {A: {$ref: 'c.yaml#/schemas/C'}}",
        **{
            "a.yaml": "stubwright: 1\nlint: {ignore: [SW310]}\npageSize: 3\nhandles: {}\n",
            "b.json": '{"tools": [{"name": "a", "inputSchema": {"type": "object"}, "extra": 1}], "_meta": {}, "b": 1}',
            "c.yaml": "schemas: {C: {type: strng}}\nserver: {}\n",
        },
    )
    assert [(one.code, one.at.file if isinstance(one.at, Place) else "", one.message) for one in found] == [
        ("SW106", "a.yaml", "`pageSize` applies to the whole server, and is not allowed in included files"),
        ("SW300", "b.json", "MCP does not define `extra` in a tool"),
        ("SW300", "b.json", "MCP does not define `b` in a `tools/list` result"),
        ("SW203", "c.yaml", "`strng` is not a JSON Schema type"),
        ("SW106", "c.yaml", "`server` applies to the whole server, and is not allowed in included files"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timeout: 10", "expected a duration such as `10s`, found the number `10`"),
        ("timeout: 0s", "expected a duration such as `10s`, found the string `0s`"),
        ("timeout: 1.5s", "expected a duration such as `10s`, found the string `1.5s`"),
        ("rateLimit: 60/min", "expected a rate such as `60/minute`, found the string `60/min`"),
        ("maxResultBytes: 1MB", "expected a size such as `64KiB`, found the string `1MB`"),
        ("maxResultBytes: 0", "expected a whole number, 1 or more, found the number `0`"),
        ("confirm: {fallback: deny}", "expected `refuse` or `allow`, found the string `deny`"),
        ("redact: [a]", "expected a JSON pointer such as `/api_key`, found the string `a`"),
        ("scopes: a", "expected a list of scopes, found the string `a`"),
        ("scopes: ['']", "this must not be empty"),
    ],
)
def test_policies(text: str, message: str) -> None:
    assert [one.message for one in check(f"{HEAD}policy:\n  {text}\n")] == [message]


@pytest.mark.parametrize(
    "ok", ["timeout: 500ms", "timeout: 7d", "rateLimit: 5/day", "maxResultBytes: 9B", "redact: ['']"]
)
def test_policies_that_are_fine(ok: str) -> None:
    assert check(f"{HEAD}policy: {{{ok}}}\n") == []


def schema_problems(text: str) -> list[tuple[str, str, str | None]]:
    return [(one.code, one.message, one.help) for one in check(f"{HEAD}schemas: {{A: {text}}}\n")]


@pytest.mark.parametrize(
    "fine",
    [
        "true",
        "{}",
        "{properties: {requried: {}, minlength: {}, type: {}}}",
        "{enum: [{requried: 1}], const: {requried: 1}, default: {requried: 1}, examples: [{requried: 1}]}",
        "{x-requried: [], example: 1, discriminator: {}, unitOfMeasure: m}",
        "{definitions: {a: {type: string}}, dependencies: {a: [b], c: {}}}",
        "{$schema: 'http://json-schema.org/draft-07/schema', $defs: {a: {}}, examples: [1], deprecated: true}",
        "{$schema: 'http://json-schema.org/draft-07/schema#', items: [{type: string}], exclusiveMinimum: 3}",
        "{$schema: 'http://json-schema.org/draft-04/schema#', minimum: 3, exclusiveMinimum: true, id: 'http://a'}",
        "{$schema: 'https://json-schema.org/draft/2019-09/schema', items: [{}], additionalItems: true}",
        "{minimum: 100000000000000000000000000000000, multipleOf: 1.0e-300}",
    ],
)
def test_schemas_that_are_fine(fine: str) -> None:
    assert schema_problems(fine) == []


@pytest.mark.parametrize(
    ("text", "code", "message", "fix"),
    [
        ("{type: String}", "SW203", "`String` is not a JSON Schema type", "did you mean `string`?"),
        ("{type: str}", "SW203", "`str` is not a JSON Schema type", "did you mean `string`?"),
        ("{anyOf: [{not: {items: {type: x}}}]}", "SW203", "`x` is not a JSON Schema type", TYPES),
        ("{Type: string}", "SW205", "`Type` is not a JSON Schema keyword", "did you mean `type`?"),
        ("{oneof: [{}]}", "SW205", "`oneof` is not a JSON Schema keyword", "did you mean `oneOf`?"),
        ("{anyOf: [{$Ref: x}]}", "SW205", "`$Ref` is not a JSON Schema keyword", "did you mean `$ref`?"),
        (
            "{properties: {title: 3}}",
            "SW204",
            "a schema must be a mapping, `true` or `false`, not the number `3`",
            "write a schema such as `{type: string}`, or `{}` for any value",
        ),
        (
            "{dependentRequired: {title: 3}}",
            "SW204",
            (
                "`dependentRequired` must be a mapping of property names to lists of property names,"
                " but contains the number `3`"
            ),
            "such as `dependentRequired: {card: [address]}`",
        ),
        (
            "{pattern: 3}",
            "SW204",
            "`pattern` must be a regular expression in a string, not the number `3`",
            "put it in quotes",
        ),
    ],
)
def test_schemas_that_are_wrong(text: str, code: str, message: str, fix: str | None) -> None:
    assert schema_problems(text) == [(code, message, fix)]


def test_a_misspelt_type_is_said_once() -> None:
    found = check(f"{HEAD}tools: [{{name: a, inputSchema: {{type: objct}}}}]")
    assert [(one.code, one.help) for one in found] == [("SW203", "did you mean `object`?")]


@pytest.mark.long
def test_schemas_of_public_servers_are_valid(corpus: Path) -> None:
    wrong: list[tuple[str, str, str]] = []
    for path in sorted((corpus / "tools").glob("*.json")):
        saved = json.dumps({"tools": json.loads(path.read_text("utf-8"))["tools"]})
        found = check(f"{HEAD}include: [t.json]\n", **{"t.json": saved})
        wrong += [(path.name, one.code, one.message) for one in found if CODES[one.code].severity == "error"]
        assert {one.code for one in found} <= {"SW204", "SW300"}
    assert wrong == [("livemcpbench--pdf-reader-mcp.json", "SW204", "`exclusiveMinimum` must be a number, not `true`")]


@pytest.mark.parametrize("draft", suite.DRAFTS)
def test_schemas_of_the_official_suite_are_valid(corpus: Path, draft: str) -> None:
    checked = 0
    for path in suite.files(corpus, draft):
        for group in json.loads(path.read_text("utf-8")):
            written = group["schema"]
            if isinstance(written, dict):
                written = {"$schema": suite.DRAFTS[draft].uri, **written}
            found = list(metaschema.check("schemas", Place("x"), written))
            if path.name != "vocabulary.json":  # which has another dialect
                assert found == [], (path.name, group["description"])
            checked += 1
    assert checked > 150


def test_checking_loads_nothing_heavy() -> None:
    program = f"""
import sys
from stubwright.compile import source, validate
from stubwright.project.files import disk
bundle, found = source.load({str(Path(__file__).parents[2] / "specs" / "weather.yaml")!r}, disk.Disk())
assert not [*found, *validate.validate(bundle), *validate.validate_schemas(bundle)]
print([name for name in ("jsonschema", "referencing", "pydantic", "mcp", "black", "jinja2") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
