"""The official JSON-Schema-Test-Suite as tools: each schema is the schema of a required property."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from stubwright.jsonschema import dialects
from stubwright.jsonschema.references import name_id_keyword

VALUE = "value"
DRAFTS = {
    "draft2020-12": dialects.DRAFT_2020_12,
    "draft2019-09": dialects.DRAFT_2019_09,
    "draft7": dialects.DRAFT_7,
    "draft6": dialects.DRAFT_6,
    "draft4": dialects.DRAFT_4,
}
"""The dialects by the suite's names."""


@dataclass(frozen=True, slots=True)
class Group:
    """A schema in the suite with its cases. `tool` is its tool."""

    name: str
    tool: Mapping[str, Any]
    tests: Sequence[Mapping[str, Any]]


NEWER = {"draft2019-09": "draft2020-12", "draft6": "draft7", "draft4": "draft7"}
"""A newer draft with the same meaning of many groups, for some drafts."""

CHANGED = {
    "draft2019-09": frozenset({"unevaluatedItems"}),  # which does not evaluate `contains` yet
    "draft6": frozenset[str](),
    "draft4": frozenset({"exclusiveMaximum", "exclusiveMinimum"}),
}
"""Keywords of both drafts with different meanings."""


def files(corpus: Path, draft: str, pattern: str = "*.json") -> list[Path]:
    """Return the suite's files for a draft, or skip the test without them. `**/*.json` includes the optional files."""
    folder = corpus / "json-schema-test-suite" / "tests" / draft
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here; STUBWRIGHT_CORPUS may name a corpus that has it")
    return sorted(folder.glob(pattern))


def groups(corpus: Path, draft: str) -> Iterator[Group]:
    """Return all required groups for a draft."""
    for path in files(corpus, draft):
        for index, group in enumerate(json.loads(path.read_text("utf-8"))):
            yield make_tool(f"{path.stem}_{index}", path.stem, group, DRAFTS[draft])


def borrow_groups(corpus: Path, draft: str) -> Iterator[Group]:
    """Return the groups of a newer draft whose schemas have the same meaning in this draft."""
    for path in files(corpus, NEWER[draft]):
        for index, group in enumerate(json.loads(path.read_text("utf-8"))):
            schema = _undeclared(group["schema"], DRAFTS[NEWER[draft]])
            if path.stem != "refRemote" and says_the_same(schema, draft):
                # An integer has no fraction in draft-04, not even zero (Core, section 3.5).
                tests = [test for test in group["tests"] if draft != "draft4" or not _has_whole_floats(test["data"])]
                yield make_tool(
                    f"{path.stem}_{index}", path.stem, {**group, "schema": schema, "tests": tests}, DRAFTS[draft]
                )


def says_the_same(schema: Any, draft: str) -> bool:
    """Return whether a schema in the newer draft means the same in `draft`: both define its keywords identically."""
    newer, older = DRAFTS[NEWER[draft]], DRAFTS[draft]
    if "json-schema.org" in json.dumps(schema) or not _is_valid(schema, older):
        return False
    strange = (newer.keywords ^ older.keywords) | CHANGED[draft]
    return all(
        strange.isdisjoint(inner) if isinstance(inner, dict) else older is not dialects.DRAFT_4
        for _, inner in dialects.iterate_subschemas(schema, newer)
    )


def _undeclared(schema: Any, dialect: dialects.Dialect) -> Any:
    """Return the schema without a `$schema` of this dialect."""
    if not isinstance(schema, dict) or schema.get("$schema") != dialect.uri:
        return schema
    return {key: item for key, item in schema.items() if key != "$schema"}


def _is_valid(schema: Any, dialect: dialects.Dialect) -> bool:
    return isinstance(schema, bool) or bool(jsonschema_rs.meta.is_valid({**schema, "$schema": dialect.uri}))


def _has_whole_floats(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_whole_floats, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and value.is_integer()


def make_tool(name: str, stem: str, group: Mapping[str, Any], dialect: dialects.Dialect) -> Group:
    """Return a group of the suite's file `stem` as a tool with that name."""
    tool = {
        "name": name,
        "description": group["description"],
        "inputSchema": {
            "$schema": dialect.uri,
            "type": "object",
            "properties": {VALUE: rebase(group["schema"], dialect)},
            "required": [VALUE],
        },
    }
    return Group(f"{stem}: {group['description']}", tool, group["tests"])


def rebase(schema: Any, dialect: dialects.Dialect) -> Any:
    """Return the schema for `#/properties/value`, with its local references adjusted.

    A schema with an identifier is a separate document, so its references do not change.
    """
    return _moved(add_identifier(_undeclared(schema, dialect), dialect), dialect)


def add_identifier(schema: Any, dialect: dialects.Dialect) -> Any:
    """Return the schema with an identifier if it has a `$recursiveRef`, which is always `#`."""
    below = [inner for _, inner in dialects.iterate_subschemas(schema, dialect) if isinstance(inner, dict)]
    if "$recursiveRef" in dialect.plain and any("$recursiveRef" in inner for inner in below):
        return {"$id": "https://example.com/suite", **schema}
    return schema


def _moved(schema: Any, dialect: dialects.Dialect) -> Any:
    if not isinstance(schema, dict) or _is_document(schema, dialect):
        return schema
    moved: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("$ref", "$dynamicRef") and isinstance(value, str) and (value == "#" or value.startswith("#/")):
            moved[keyword] = f"#/properties/{VALUE}{value[1:]}"
        elif isinstance(value, dict) and keyword in dialect.named | {"$defs", "definitions"}:
            moved[keyword] = {name: _moved(child, dialect) for name, child in value.items()}
        elif isinstance(value, list) and keyword in dialect.listed:
            moved[keyword] = [_moved(child, dialect) for child in value]
        elif keyword in dialect.single:
            moved[keyword] = _moved(value, dialect)
        else:
            moved[keyword] = value
    return moved


def _is_document(schema: Mapping[str, Any], dialect: dialects.Dialect) -> bool:
    identifier = schema.get(name_id_keyword(dialect))
    hidden = dialect.reference_hides_siblings and "$ref" in schema
    return isinstance(identifier, str) and not identifier.startswith("#") and not hidden
