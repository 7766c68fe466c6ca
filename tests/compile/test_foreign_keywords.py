"""Third-party keywords in schemas: any keyword of any or no dialect, with any value, at any place.

Each results in diagnostics or in a package, never in an exception. The tests use the keywords of all dialects, at the
places of schemas in each dialect's table. `STUBWRIGHT_WHOLE_PAYLOADS=1` runs many more combinations.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import amounts
from amounts import choose
from stubwright import cli
from stubwright.compile import pipeline
from stubwright.diagnostics import Place
from stubwright.jsonschema import dialects
from stubwright.jsonschema import instances as mocked
from stubwright.project.files import disk

pytestmark = pytest.mark.payloads

Json = Any

EVERY = choose("STUBWRIGHT_WHOLE_PAYLOADS", 499, 127, 13)
"""Of how many combinations one is taken; a prime, so that all keywords, values and places come up."""

BATCH = 150
"""Tools per manifest; rejected tools are removed before the others are compiled."""

FOREIGN = ("x-handle", "x-mcp-header", "x-foo", "nullable", "discriminator", "example", "stubwright", "typ", "a key")
KEYWORDS = (*sorted(dialects.KEYWORDS), *FOREIGN)
VALUES: Sequence[Json] = (
    *(None, True, False, 0, -1, 1.5, 10**30, "", "a", "string", "#", "#/properties/a", "(", "2020-01-01"),
    *([], [1], ["a"], [None], [{}], [["a"]], {}, {"a": 1}, {"a": {}}, {"a": ["b"]}, {"type": "string"}, {"a": None}),
    *({"a": {"minimum": "b"}}, {"a": {"type": 1}}, {"a": {"$ref": "#/$defs/no"}}, [{"minimum": "b"}]),
)


def places(dialect: dialects.Dialect) -> Iterator[tuple[str, Any]]:
    """Where schemas stand: at the root, below each keyword that holds some, and where only a reference leads."""
    yield "root", lambda schema: {"type": "object", **schema}
    for keyword in sorted(dialect.single):
        yield keyword, lambda schema, keyword=keyword: _below({keyword: schema})
    for keyword in sorted(dialect.listed):
        yield f"{keyword}[]", lambda schema, keyword=keyword: _below({keyword: [schema]})
    for keyword in sorted({*dialect.named, "$defs", "definitions"}):
        yield f"{keyword}.*", lambda schema, keyword=keyword: _below({keyword: {"a": schema}})
    for keyword in ("$defs", "definitions", "x-foo"):
        yield (
            f"a reference to {keyword}.*",
            lambda schema, keyword=keyword: {
                "type": "object",
                "properties": {"p": {"$ref": f"#/{keyword}/a"}},
                keyword: {"a": schema},
            },
        )


def _below(schema: Json) -> Json:
    return {"type": "object", "properties": {"p": schema, "q": {"type": "string"}}}


def tools(dialect: dialects.Dialect) -> Iterator[Json]:
    every = itertools.product(places(dialect), KEYWORDS, VALUES)
    for number, ((place, put), keyword, value) in enumerate(itertools.islice(every, 0, None, EVERY)):
        schema = {"$schema": dialect.uri, **put({keyword: value})}
        about = json.dumps([place, keyword, value])
        # What tells the tools apart is in `description`, so that a failure names the combination.
        yield {"name": f"t{number}", "description": about, "inputSchema": schema, "outputSchema": schema}


def batches(dialect: dialects.Dialect) -> Iterator[Sequence[Json]]:
    every = tools(dialect)
    while some := [*itertools.islice(every, BATCH)]:
        yield some


def compiled(folder: Path, some: Sequence[Json]) -> pipeline.Result:
    (folder / "manifest.json").write_text(
        json.dumps({"stubwright": 1, "server": {"name": "odd", "version": "1.0.0"}, "tools": some})
    )
    return pipeline.compile_manifest(str(folder / "manifest.json"), disk.Disk(), "manifest.json")


def sound(folder: Path, some: Sequence[Json]) -> Sequence[Json]:
    """Those of some tools that `check` takes; what is wrong comes stage by stage."""
    while True:
        found = compiled(folder, some).diagnostics
        wrong = {one.at.pointer[1] for one in found if one.severity == "error" and isinstance(one.at, Place)}
        if not wrong:
            return some
        some = [tool for number, tool in enumerate(some) if number not in wrong]


@pytest.mark.parametrize("dialect", amounts.sample(dialects.DIALECTS, 1), ids=lambda dialect: str(dialect.name))
def test_whatever_a_schema_holds_is_a_diagnostic_or_a_package(dialect: dialects.Dialect, tmp_path: Path) -> None:
    taken = 0
    for some in batches(dialect):
        known = sound(tmp_path, some)
        taken += len(known)
        result = compiled(tmp_path, known)
        assert result.manifest is not None, [one.message for one in result.diagnostics if one.severity == "error"]
        pipeline.generate(result.manifest)
        for tool in known:
            with contextlib.suppress(mocked.UnsatisfiableError):
                mocked.make(tool["outputSchema"], "seed")
    assert taken > 20


@pytest.mark.parametrize("dialect", amounts.sample(dialects.DIALECTS, 1), ids=lambda dialect: str(dialect.name))
def test_other_verbs_take_it_too(dialect: dialects.Dialect, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = [*itertools.islice(tools(dialect), 30)]
    (tmp_path / "saved.json").write_text(json.dumps({"tools": everything}))
    assert cli.run(["import", "tools", str(tmp_path / "saved.json"), "-o", str(tmp_path / "imported.yaml")]) == 0
    known = sound(tmp_path, everything)
    compiled(tmp_path, [{**tool, "outputSchema": {"type": "object"}} for tool in known])
    (tmp_path / "manifest.json").rename(tmp_path / "old.json")
    compiled(tmp_path, known)
    manifest = str(tmp_path / "manifest.json")
    assert cli.run(["docs", manifest, "-o", str(tmp_path / "pages")]) == 0
    assert cli.run(["diff", str(tmp_path / "old.json"), manifest]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dialect", "schema", "message"),
    [
        (dialects.DRAFT_2020_12, _below({"x-handle": ["a"]}), "`x-handle` must be the name of a handle, not a list"),
        (
            dialects.DRAFT_2020_12,
            _below({"x-handle": {}}),
            "`x-handle` must be the name of a handle, not an empty mapping",
        ),
        (dialects.DRAFT_7, {"type": "object", "$defs": {"a": {"minimum": "b", "maximum": 1}}}, None),
        (dialects.DRAFT_7, {"type": "object", "$defs": {"a": {"required": [["b"]], "properties": 1}}}, None),
        (
            dialects.DRAFT_7,
            {"type": "object", "properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"minimum": "b"}}},
            "`#/$defs/a` does not refer to a valid schema",
        ),
    ],
)
def test_what_a_meta_schema_does_not_look_into_may_be_anything(
    dialect: dialects.Dialect, schema: Json, message: str | None, tmp_path: Path
) -> None:
    tool = {"name": "t", "description": "A tool.", "inputSchema": {"$schema": dialect.uri, **schema}}
    result = compiled(tmp_path, [tool])
    assert [one.message for one in result.diagnostics if one.severity == "error"] == ([message] if message else [])
    if message is None:
        assert result.manifest is not None
        assert pipeline.generate(result.manifest)
