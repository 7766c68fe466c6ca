"""The official JSON-Schema-Test-Suite as tools: each schema becomes the schema of a required property."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolwright.schemas import dialects

VALUE = "value"
DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}


@dataclass(frozen=True, slots=True)
class Group:
    """One schema of the suite with its cases; `tool` is the tool made of it."""

    name: str
    tool: Mapping[str, Any]
    tests: Sequence[Mapping[str, Any]]


def groups(folder: Path, draft: str) -> Iterator[Group]:
    """All required groups of a draft."""
    for path in sorted((folder / "tests" / draft).glob("*.json")):
        for index, group in enumerate(json.loads(path.read_text("utf-8"))):
            name = f"{path.stem}_{index}"
            schema = rebased(group["schema"], DRAFTS[draft])
            tool = {
                "name": name,
                "description": group["description"],
                "inputSchema": {
                    "$schema": DRAFTS[draft],
                    "type": "object",
                    "properties": {VALUE: schema},
                    "required": [VALUE],
                },
            }
            yield Group(f"{path.stem}: {group['description']}", tool, group["tests"])


def rebased(schema: Any, uri: str) -> Any:
    """The schema as it must read below `#/properties/value`: its local references start there.

    A schema with an `$id` of its own is a document of its own, so that its references stay as they are.
    """
    dialect = dialects.of({"$schema": uri})
    assert dialect is not None
    if isinstance(schema, dict) and schema.get("$schema") == uri:
        schema = {key: item for key, item in schema.items() if key != "$schema"}
    return _moved(schema, dialect)


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
    identifier = schema.get("$id")
    hidden = dialect.reference_hides_siblings and "$ref" in schema
    return isinstance(identifier, str) and not identifier.startswith("#") and not hidden
