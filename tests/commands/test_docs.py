"""The pages of `stubwright docs`: contents, escaping of text, and behaviour in a browser."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import amounts
import browser
import corpus as real
from command_line import stubwright
from corpus import SHARDS
from echo import HOSTILE
from packages import manifest, tool
from pages import Page
from stubwright import ir, tokens
from stubwright.compile import pipeline
from stubwright.diagnostics import Place
from stubwright.docs import page, tables, views
from stubwright.jsonschema import dialects
from stubwright.project.files import disk

EVIL = HOSTILE + "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload='alert(3)' & <!-- ]]>"

SCOPE = re.sub(r"[^!#-\[\]-~]", "", EVIL)
"""What of it a scope may have."""


def view(value: Mapping[str, Any], folder: Path) -> views.View:
    """What the page of a manifest says."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(value))
    checked = pipeline.compile_manifest(str(path), disk.Disk(), "manifest.json")
    assert checked.manifest is not None, checked.diagnostics
    return views.view(checked.manifest, checked.documents[str(path)].value)


def rows(schema: Any, dialect: str = dialects.DRAFT_2020_12.uri) -> list[str]:
    """The tables of a schema in short: a line for each row."""
    lines = []
    for table in tables.make_tables(ir.Schema(schema, dialect, Place(""))):
        for row in (table.whole, *table.rows):
            name = (table.name or "-") if row is table.whole else "  " * row.depth + row.name + "*" * row.required
            kinds = " | ".join(
                kind.text + (f" #{kind.target}" if kind.target is not None else "") for kind in row.kinds
            )
            notes = "; ".join(" ".join((note.words, *note.values)) for note in row.notes)
            lines.append(
                f"{name}: {kinds}" + f" [{notes}]" * bool(notes) + f" {row.description}" * bool(row.description)
            )
    return lines


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, ["-: object"]),
        (
            {
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "minimum": 1, "maxLength": 1, "default": None, "description": "N"}
                },
                "required": ["n", "other"],
                "additionalProperties": False,
            },
            [
                "-: object [also required other; no other keys]",
                "n*: integer [at least 1; at most 1 character; default null] N",
            ],
        ),
        (
            {"properties": {"a": {"type": "array", "minItems": 2, "items": {"type": "string"}}}},
            ["-: any", "a: array of | string [at least 2 items]"],
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"x": {"const": 1}}}},
            ["-: array", "each item: object", "  x: integer [always 1]"],
        ),
        (
            {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
            ["-: any", "a: string | null"],
        ),
        (
            {"properties": {"a": {"oneOf": [{"type": "string", "format": "date"}, {"enum": ["x", 1]}]}}},
            [
                "-: any",
                "a: one of these",
                "  option 1: string [format date]",
                '  option 2: string | integer [one of "x" 1]',
            ],
        ),
        (
            {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            [
                "-: object [and any of these]",
                "option 1: any [also required a]",
                "option 2: any [also required b]",
            ],
        ),
        (
            {"allOf": [{"type": "object"}], "not": {"required": ["x"]}, "dependentRequired": {"a": ["b"]}},
            ["-: any [with a, also b]", "also: object", "but not: any [also required x]"],
        ),
        (
            {"prefixItems": [{"type": "number"}, True], "items": False, "uniqueItems": True},
            ["-: any [no items; unique items]", "item 1: number", "item 2: any"],
        ),
        (
            {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": {"type": "number"}},
            ["-: any", "keys like ^x-: string", "any other key: number"],
        ),
        ({"properties": {"never": False, "any": True}}, ["-: any", "never: nothing", "any: any"]),
        (
            {"if": {"const": 1}, "then": {"type": "integer"}},
            ["-: any", "if it fits: integer [always 1]", "then also: integer"],
        ),
        (
            {"x-mcp-header": "Region", "contentMediaType": "text/html"},
            ["-: any [x-mcp-header Region; contentMediaType text/html]"],
        ),
    ],
)
def test_a_schema_as_rows(schema: Any, expected: list[str]) -> None:
    assert rows(schema) == expected


def test_references_lead_to_tables_of_their_own() -> None:
    node = {
        "type": "object",
        "description": "A node",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "all": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    }
    schema = {
        "properties": {
            "first": {"$ref": "#/$defs/Node"},
            "self": {"$ref": "#"},
            "meta": {"$ref": dialects.DRAFT_2020_12.uri},
        },
        "$defs": {"Node": node, "Unused": {"type": "string"}, "Named": {"$anchor": "it", "type": "null"}},
        "items": {"$ref": "#it"},
    }
    assert rows(schema) == [
        "-: any",
        "first: Node #1 A node",
        "self: the whole, again #0",
        f"meta: JSON Schema ({dialects.DRAFT_2020_12.uri})",
        "each item: Named #2",
        "Node: object A node",
        "next: Node #1 A node",
        "all: array of | Node #1",
        "Named: null",
    ]


def test_before_2019_09_a_reference_stands_alone() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/definitions/A", "type": "string"}},
        "definitions": {"A": {"type": "null"}},
    }
    assert rows(schema, dialects.DRAFT_7.uri) == ["-: any", "a: A #1", "A: null"]
    assert rows(schema)[1] == "a: A #1 | string"


def test_tokens_are_estimated_from_the_characters_of_compact_json() -> None:
    assert tokens.count({"name": "ab"}) == 3  # {"name":"ab"} has 13 characters
    assert tokens.count({"name": "東京"}) == 3


def test_what_a_page_says(tmp_path: Path) -> None:
    first = tool(
        "pay",
        {"n": {"type": "integer"}},
        title="Pay",
        annotations={"destructiveHint": True},
        outputSchema={"type": "array"},
        stubwright={
            "policy": {"timeout": "3s", "scopes": ["a", "b"], "confirm": {"fallback": "allow"}},
            "examples": [{"name": "one", "input": {"n": 1}, "output": [1], "exact": True}, {"input": {"n": 2}}],
            "deprecated": {"since": "1.1", "use": "pay_more"},
            "ask": {
                "sure": {"message": "Sure?", "schema": {"type": "object", "properties": {"yes": {"type": "boolean"}}}}
            },
        },
    )
    prompt = {
        "name": "plan",
        "arguments": [{"name": "city", "required": True}],
        "stubwright": {"messages": [{"role": "user", "text": "Plan {{city}}"}], "complete": {"city": ["Oslo"]}},
    }
    found = view(
        manifest(
            [first, tool("pay_more")], prompts=[prompt], policy={"timeout": "30s"}, protocol={"min": "2025-06-18"}
        ),
        tmp_path,
    )
    [pay, more] = found.sections[0].entries
    assert (pay.title, pay.deprecated) == ("Pay", "Deprecated since 1.1; use pay_more.")
    assert [badge.text for badge in pay.badges] == ["destructive"]
    assert [(fact.name, fact.values, fact.note) for fact in pay.facts] == [
        ("Timeout", ("3s",), ""),
        ("Required scopes", ("a", "b"), ""),
        ("Requires confirmation", ("fallback: allow",), ""),
    ]
    assert [(fact.name, fact.values, fact.note) for fact in more.facts] == [("Timeout", ("30s",), "default")]
    assert [part.heading for part in pay.parts] == ["Arguments", "Result", "May ask: sure"]
    assert [(one.name, one.answer is None, one.is_exact) for one in pay.examples] == [
        ("one", False, True),
        ("example 2", True, False),
    ]
    assert json.loads(pay.examples[0].request) == {"name": "pay", "arguments": {"n": 1}}
    [plan] = found.sections[1].entries
    assert plan.arguments == (views.Argument("city", None, True, ("Oslo",)),)
    assert plan.messages == (("user", "Plan {{city}}"),)
    assert found.oldest == "2025-06-18"
    assert ("title", "2025-06-18", ("pay",)) in [(one.field, one.since, one.users) for one in found.newer]
    assert ("an outputSchema for a value other than an object", "2026-07-28", ("pay",)) in [
        (one.field, one.since, one.users) for one in found.newer
    ]
    assert [json.loads(one.code)["mcpServers"]["sample"] for one in found.snippets[:2]] == [
        {"command": "python", "args": ["-m", "sample_mcp"]},
        {"type": "http", "url": "http://127.0.0.1:8000/mcp"},
    ]
    assert "Message of the user" in Page(page.render(found)).text


def used(model: views.Model) -> list[str]:
    """Who uses a shared schema, as what."""
    return [" ".join((f"#{use.id}", use.key, *use.words)) for use in model.uses]


def test_each_shared_schema_has_one_place(tmp_path: Path) -> None:
    ticket = {
        "type": "object",
        "description": "A ticket",
        "properties": {
            "id": {"type": "integer"},
            "by": {"$ref": "#/schemas/Person"},
            "on": {"$ref": "#/schemas/Ticket"},
        },
    }
    person = {"type": "object", "properties": {"wrote": {"type": "array", "items": {"$ref": "#/schemas/Ticket"}}}}
    whole = {"$ref": "#/schemas/Ticket"}
    asked = {"message": "Who?", "schema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    found = view(
        manifest(
            [
                tool("get", {"id": {"type": "integer"}}, outputSchema=whole),
                tool("put", {"ticket": whole, "by": {"$ref": "#/schemas/Person"}}, outputSchema=whole),
                tool("ask", stubwright={"ask": {"who": asked}}),
            ],
            schemas={"Ticket": ticket, "Person": person, "Unused": {"type": "string"}},
        ),
        tmp_path,
    )
    assert [(model.anchor.id, model.keys) for model in found.models] == [
        ("schema-Ticket", ("id", "by", "on")),
        ("schema-Person", ("wrote",)),
        ("schema-Unused", ()),
    ]
    tickets, persons, unused = found.models
    assert used(tickets) == [
        "#tool-get-output get result",
        "#tool-put-input put arguments result",
        "#schema-Person Person",
    ]
    assert used(persons) == ["#tool-put-input put arguments", "#schema-Ticket Ticket"]
    assert used(unused) == []
    get, put, _ = found.sections[0].entries
    assert [len(part.tables) for part in (*get.parts, *put.parts)] == [1, 1, 1, 1]
    assert [row.kinds[0].anchor and row.kinds[0].anchor.id for row in put.parts[0].tables[0].rows] == [
        "schema-Ticket",
        "schema-Person",
    ]
    assert put.parts[0].tables[0].rows[0].description == "A ticket"
    assert [row.kinds[0].text for row in tickets.tables[0].rows] == ["integer", "Person", "Ticket"]
    assert [len(model.tables) for model in found.models] == [1, 1, 1]
    shown = Page(page.render(found))
    assert {link[1:] for link in shown.having("href")} <= set(shown.having("id"))
    assert "Ticket with id, by, on" in re.sub(r"\s+", " ", shown.text)


def test_a_schema_that_several_tools_bring_along_has_one_place(tmp_path: Path) -> None:
    node = {"type": "object", "properties": {"leaf": {"$ref": "#/$defs/Leaf"}, "next": {"$ref": "#/$defs/Node"}}}
    leaf, other = {"type": "string"}, {"type": "integer"}

    def one(name: str, **defs: Any) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": defs}
        return {"name": name, "inputSchema": schema}

    alone = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Alone"}}, "$defs": {"Alone": {"type": "null"}}}
    found = view(
        manifest(
            [
                one("a", Node=node, Leaf=leaf),
                one("b", Leaf=leaf, Node=node, Unused={}),
                one("c", Node=node, Leaf=other),
                one("d", Node=node, Leaf=other),
                {"name": "e", "inputSchema": alone},
            ]
        ),
        tmp_path,
    )
    assert [(model.anchor.name, [use.key for use in model.uses]) for model in found.models] == [
        ("Node", ["a", "b"]),
        ("Leaf", ["Node"]),
        ("Node", ["c", "d"]),
        ("Leaf", ["Node"]),
    ]
    ids = [model.anchor.id for model in found.models]
    assert ids[:2] == ["schema-Node", "schema-Leaf"]
    assert [re.sub("-[0-9a-f]{8}$", "-", one) for one in ids[2:]] == ["schema-Node-", "schema-Leaf-"]
    assert [kind.text for row in found.models[3].tables for kind in row.whole.kinds] == ["integer"]
    parts = [entry.parts[0] for entry in found.sections[0].entries]
    assert [[table.name for table in part.tables] for part in parts] == [[""], [""], [""], [""], ["", "Alone"]]


def test_what_leads_to_something_else_is_another_schema(tmp_path: Path) -> None:
    holder = {"properties": {"x": {"$ref": "#/properties/y"}}}
    tools = [
        {
            "name": name,
            "inputSchema": {
                "type": "object",
                "properties": {"h": {"$ref": "#/$defs/Holder"}, "y": {"type": kind}},
                "$defs": {"Holder": holder},
            },
        }
        for name, kind in (("a", "string"), ("b", "integer"))
    ]
    assert view(manifest(tools), tmp_path).models == ()


def test_a_title_that_repeats_the_name_is_no_news() -> None:
    schema = {"properties": {"page_size": {"title": "Page Size"}, "n": {"title": "Number"}}}
    [table] = tables.make_tables(ir.Schema(schema, dialects.DRAFT_2020_12.uri, Place("")))
    assert [row.title for row in table.rows] == [None, "Number"]


def test_a_client_alone_has_no_server_to_start(tmp_path: Path) -> None:
    prompts = [{"name": "greet-all"}]
    found = view(manifest([tool("ping_all")], emit=["client", "typescript"], prompts=prompts), tmp_path)
    assert [one.heading for one in found.snippets] == ["From Python", "From TypeScript"]
    facts = [fact.values for section in found.sections for entry in section.entries for fact in entry.facts]
    assert facts == [("pingAll",), ("promptGreetAll",)]


@pytest.mark.parametrize("name", ["weather.yaml", "everything/everything.yaml"])
def test_a_page_is_well_formed_and_needs_nothing_else(name: str, tmp_path: Path) -> None:
    done = stubwright("docs", str(ROOT / "specs" / name), "-o", "site", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [made] = (file for file in (tmp_path / "site").iterdir() if file.name != "index.html")
    found = Page(made.read_text("utf-8"))
    ids = found.having("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in found.having("href") if link.startswith("#")} <= set(ids)
    assert {reference for listed in found.having("aria-labelledby") for reference in listed.split()} <= set(ids)
    assert [found.having(attribute) for attribute in ("src", "style", "onclick")] == [[], [], []]
    assert not [tag for tag, _ in found.tags if tag in ("link", "iframe", "object", "base", "form")]
    policy = next(attrs["content"] for tag, attrs in found.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'; ")
    assert "unsafe" not in str(policy)


MARKDOWN = (
    """A *daily* forecast.

# Heading

![pixel](https://evil.example/pixel.png) [x](javascript:alert(8)) <javascript:alert(9)> [y](https://x.example)

<img src=https://evil.example/a onerror=alert(10)><iframe src=https://evil.example></iframe>

```<script>alert(11)</script>
\u202e</code></pre><script>alert(12)</script>
```

- one
  - """
    + "long" * 200
)


def evil(key: str) -> dict[str, Any]:
    """A tool whose every text is hostile."""
    schema = {
        "type": "object",
        "title": EVIL,
        "description": EVIL,
        "properties": {EVIL: {"enum": [EVIL], "default": EVIL, "examples": [EVIL], "format": EVIL, EVIL: EVIL}},
        "required": [EVIL],
        "$defs": {EVIL: {"type": "string"}},
        "patternProperties": {"</script>": {"pattern": "<script>"}},
        "dependentRequired": {EVIL: [EVIL]},
    }
    ours = {
        "examples": [{"name": EVIL, "description": EVIL, "input": {EVIL: EVIL}}],
        "deprecated": {"since": EVIL},
        "policy": {"scopes": [SCOPE]},
        "ask": {
            "really": {
                "message": EVIL,
                "schema": {"type": "object", "properties": {"a": {"type": "string", "title": EVIL}}},
            }
        },
    }
    return {
        "name": key,
        "title": EVIL,
        "description": EVIL,
        "inputSchema": schema,
        "outputSchema": {**schema, "properties": {}, "required": []},
        "annotations": {"title": EVIL},
        "stubwright": ours,
    }


def hostile() -> dict[str, Any]:
    """A manifest whose every text is hostile."""
    return manifest(
        [evil("evil"), evil("</h3><script>alert(4)</script>")],
        resources=[{"uri": "x:<script>alert(5)</script>", "name": EVIL, "description": EVIL, "mimeType": EVIL}],
        prompts=[
            {
                "name": "<script>alert(6)</script>",
                "description": EVIL,
                "arguments": [{"name": "x", "description": EVIL}],
                "stubwright": {"messages": [{"role": "user", "text": EVIL}], "complete": {"x": [EVIL]}},
            }
        ],
        server={
            "name": "sample",
            "version": EVIL,
            "title": EVIL,
            "instructions": EVIL,
            "description": EVIL,
            "websiteUrl": "javascript:alert(7)",
        },
    )


def test_text_never_becomes_markup(tmp_path: Path) -> None:
    text = page.render(view(hostile(), tmp_path))
    harmless = re.sub(r"(</h3>)?<script>alert.[456].</script>", "calm", json.dumps(hostile()))
    harmless = harmless.replace(json.dumps(EVIL)[1:-1], "calm {{ x }}").replace(json.dumps(SCOPE)[1:-1], "calm")
    assert "alert(1)" not in harmless
    found, plain = Page(text), Page(page.render(view(json.loads(harmless), tmp_path)))
    assert found.frame == plain.frame
    assert found.unsafe() == plain.unsafe() == []
    assert [tag for tag, _ in found.tags].count("script") == 1
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert not [link for link in found.having("href") if not link.startswith("#")]
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert html.escape("<script>alert(1)</script>") in text


@pytest.mark.long
def test_the_same_bytes_wherever_and_however_it_is_made(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "a b" / "second"
    for folder in (first, second):
        (folder / "specs").mkdir(parents=True)
        (folder / "specs" / "m.json").write_text(json.dumps(hostile()))
    made = set()
    for cwd, manifest_path, output, seed in (
        (first, "specs/m.json", "out", ""),
        (first, str(first / "specs" / "m.json"), str(tmp_path / "elsewhere"), "2"),
        (first / "specs", "m.json", "../other/deep", ""),
        (second, "./specs/m.json", ".", "4"),
    ):
        env = {"PYTHONHASHSEED": seed, "TZ": f"Etc/GMT+{seed}", "LC_ALL": "C"} if seed else None
        done = stubwright("docs", manifest_path, "-o", output, cwd=cwd, env=env)
        assert done.returncode == 0, done.stderr
        made.add((cwd / output / "sample_mcp.html").read_bytes())
    [page_bytes] = made
    assert str(tmp_path).encode() not in page_bytes


def test_warnings_are_what_check_is_for(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(manifest([{"name": "a", "inputSchema": {"type": "object"}}])))
    done = stubwright("docs", "m.json", "-o", "site", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "m.json: 1 warning, which `stubwright check` lists\n" in done.stdout
    strict = stubwright("docs", "--strict", "m.json", "-o", "site", cwd=tmp_path)
    assert (strict.returncode, strict.stderr.count("warning[SW312]")) == (1, 1)


def test_the_command(tmp_path: Path) -> None:
    good, bad = json.dumps(manifest([tool("a")])), json.dumps(manifest([{**tool("a"), "inputSchema": 3}]))
    (tmp_path / "good.json").write_text(good)
    (tmp_path / "twin.json").write_text(good)
    (tmp_path / "bad.json").write_text(bad)
    target = Path("site") / "sample_mcp.html"
    assert stubwright("docs", "good.json", cwd=tmp_path).returncode == 2
    first = stubwright("docs", "good.json", "-o", "site", cwd=tmp_path)
    index = target.with_name("index.html")
    assert (first.returncode, first.stdout) == (0, f"{target}: written\n{index}: written\n")
    assert '<li><a href="sample_mcp.html">sample 1</a></li>' in (tmp_path / index).read_text()
    (tmp_path / index).write_text("<p>mine</p>")
    again = stubwright("docs", "good.json", "-o", "site", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, f"{target}: up to date\n")
    for path in ("./good.json", str(tmp_path / "good.json")):
        spelt = stubwright("docs", path, "-o", "site", cwd=tmp_path)
        assert (spelt.returncode, spelt.stdout) == (0, f"{target}: up to date\n")
    twice = stubwright("docs", "good.json", "twin.json", "-o", "site", cwd=tmp_path)
    assert twice.returncode == 1
    assert "twin.json:1:38: error[SW401]: `site/sample_mcp.html` is already generated from `good.json`" in twice.stderr
    wrong = stubwright("docs", "bad.json", "-o", "site", cwd=tmp_path)
    assert wrong.returncode == 1
    assert "error[SW102]" in wrong.stderr
    (tmp_path / target).write_text("<p>mine</p>")
    theirs = stubwright("docs", "good.json", "-o", "site", cwd=tmp_path)
    assert theirs.returncode == 1
    assert "error[SW403]: `site/sample_mcp.html` was not written by stubwright" in theirs.stderr
    assert (tmp_path / target).read_text() == "<p>mine</p>"
    for leads in ("page.html", "nowhere.html"):
        (tmp_path / target).rename(tmp_path / "page.html")
        (tmp_path / target).symlink_to(tmp_path / leads)
        linked = stubwright("docs", "good.json", "-o", "site", cwd=tmp_path)
        assert linked.returncode == 1
        assert (
            f"error[SW406]: cannot write below `site`: it is a link, so it was left unchanged (`{target}`)"
            in linked.stderr
        )
        assert (tmp_path / target).is_symlink()
        assert not (tmp_path / "nowhere.html").exists()
        (tmp_path / "page.html").rename(tmp_path / target)
    blocked = stubwright("docs", "good.json", "-o", "good.json", cwd=tmp_path)
    assert blocked.returncode == 1
    assert "error[SW406]" in blocked.stderr


@pytest.mark.parametrize("shard", amounts.sample(range(SHARDS), 1))
def test_the_tools_of_public_servers(shard: int, corpus: Path, tmp_path: Path) -> None:
    for path in real.files(corpus, shard):
        made = view(real.imported(path).manifest, tmp_path)
        found = Page(page.render(made))
        ids = found.having("id")
        assert len(ids) == len(set(ids)), path.stem
        assert {link[1:] for link in found.having("href") if link.startswith("#")} <= set(ids), path.stem
        assert found.unsafe() == [], path.stem


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> browser.Browser:
    return browser.find_once(tmp_path_factory)


def opened(chromium: browser.Browser, text: str, folder: Path) -> Any:
    """Return a browser's report on a page."""
    (folder / "page.html").write_text(text, "utf-8")
    return chromium.run(Path(__file__).parents[1] / "peers" / "browser.mjs", (folder / "page.html").as_uri())


TOOLS = ["tool-get_weather", "tool-get_forecast", "tool-list_stations"]
OTHERS = ["resource-read_about", "template-read_current", "prompt-prompt_plan_day", "schema-Place"]


@pytest.mark.long
def test_a_page_in_a_browser(chromium: browser.Browser, tmp_path: Path) -> None:
    path = str(ROOT / "specs" / "weather.yaml")
    checked = pipeline.compile_manifest(path, disk.Disk())
    assert checked.manifest is not None
    said = opened(chromium, page.render(views.view(checked.manifest, checked.documents[path].value)), tmp_path)
    assert (said["console"], said["errors"], said["violations"]) == ([], [], [])
    assert {re.sub(r".*/", "", url).partition("#")[0] for url in said["requests"]} == {"page.html"}
    assert said["all"] == said["cleared"] == said["revealed"] == TOOLS + OTHERS
    assert said["openedFirst"] == []
    # the keyboard
    assert (said["firstTab"], said["skipIsSeen"], said["skipped"]) == ("#content", True, "content")
    assert said["slash"] == said["up"] == "search"
    assert (said["found"], said["status"]) == (["tool-get_forecast"], "5 hits in 1 of 7")
    assert (said["listed"], said["marks"]) == (["#tool-get_forecast"], ["forecast", "daily"])
    assert said["highlights"] == ["forecast", "forecast", "daily"]
    assert (said["down"], said["outline"]) == ("#tool-get_forecast", "solid")
    assert said["entered"] == ["#tool-get_forecast", "get_forecast", ["tool-get_forecast"]]
    assert said["spread"] > len(said["highlights"])
    assert (said["shut"], said["again"]) == ([], ["tool-get_forecast"])
    assert (said["none"], said["nothing"], said["unmarked"]) == ([], True, False)
    assert said["ranked"][:4] == [f"#{one}" for one in (TOOLS[0], *OTHERS[:2], OTHERS[2])], (
        "names before titles before descriptions"
    )
    # shared schemas
    assert [line for line in said["preview"] if line] == [
        "Place",
        "City name or zip code",
        "string",
        "at least 1 character",
    ]
    assert (said["previewGone"], said["described"]) == (True, "preview")
    assert said["referred"][:2] == ["Place", "schema-Place"]
    assert said["uses"] == ["#tool-get_weather-input", "#tool-get_forecast-input"]
    assert 0 <= said["referred"][2] < 40
    assert 0 <= said["used"] < 40
    assert 0 <= said["searchTop"] < 100
    assert (said["closedAll"], said["openedAll"]) == (OTHERS, TOOLS + OTHERS)
    # code, colors and paper
    assert (said["covered"], said["said"]) == (0, "Copied")
    assert json.loads(said["copied"])["mcpServers"]["weather"]["args"] == ["-m", "weather_mcp"]
    assert said["light"] == said["toggledBack"] != said["dark"] == said["toggled"] == said["remembered"]
    assert (said["unprinted"], said["printedControls"]) == (0, 0)
    assert (said["beforePrint"], said["afterPrint"]) == (7, 0)
    assert said["deep"][0] == ["tool-get_forecast"]
    assert 0 <= said["deep"][1] < 40
    # a telephone
    assert (said["overflow"], said["overflowOpen"], said["barTop"]) == (0, 0, 0)
    assert said["sheet"] == [True, True, "contents"]
    assert (said["scrolls"], said["scrolled"], said["searchStays"]) == ("Scroll for more ↓", False, True)
    assert said["back"] == [False, False, 600]
    assert (said["seek"], said["chosen"], said["listAgain"]) == ("search", [False, "get_forecast"], True)
    # no script
    assert (said["withoutScript"], said["deadControls"]) == (7, 0)
    assert said["deepWithoutScript"]
    assert said["clickWithoutScript"]
    assert (said["sheetWithoutScript"], said["leftWithoutScript"]) == ([True, True], [False, True])


@pytest.mark.long
def test_a_hostile_page_in_a_browser(chromium: browser.Browser, tmp_path: Path) -> None:
    value = hostile()
    forecast = {**tool("get_forecast", {"a": {"$ref": "#/schemas/Place"}}), "description": MARKDOWN}
    forecast["outputSchema"] = {"type": "object", "title": "get_forecast" * 9}
    value["tools"] = [tool("get_weather", {"a": {"$ref": "#/schemas/Place"}}), forecast, *value["tools"]]
    value["schemas"] = {"Place": {"type": "string"}}
    said = opened(chromium, page.render(view(value, tmp_path)), tmp_path)
    assert (said["console"], said["errors"], said["violations"]) == ([], [], [])
    assert {re.sub(r".*/", "", url).partition("#")[0] for url in said["requests"]} == {"page.html"}
    assert (said["overflow"], said["overflowOpen"]) == (0, 0)
