"""A saved `tools/list` result as a manifest.

Takes the JSON text of the list, bare or in one of its common wrappers (`{"tools": …}`, a JSON-RPC response), and gives
a manifest with the tools as they stand. What a manifest cannot hold is fixed, and each fix is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright.compile.syntax import jsontext
from toolwright.diagnostics import Place
from toolwright.importers import collisions
from toolwright.importers.reading import DocumentError
from toolwright.jsonschema import dialects, metaschema

if TYPE_CHECKING:
    from toolwright.compile.syntax.positions import Problem
    from toolwright.jsonschema.locations import Role


@dataclass(frozen=True, slots=True)
class Imported:
    """A manifest, and what had to be fixed to make it one."""

    manifest: Mapping[str, Any]
    notes: tuple[str, ...]


def parse(text: str) -> tuple[Any, list[Problem]]:
    """The value of a saved list, or what is wrong with it; what a manifest could not hold is taken as it is."""
    try:
        return json.loads(text, parse_constant=_refuse), []
    except (ValueError, RecursionError):
        return None, jsontext.parse(text)[1]


def read(text: str) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The tools in `text`, as `listed` gives them.

    Raises:
        DocumentError: It is not JSON, or holds no list of tools.
    """
    value, problems = parse(text)
    if problems:
        raise DocumentError(problems[0].message)
    return listed(value)


def listed(value: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The tools in a value, and of the `serverInfo` and what else stands beside them the texts that say something.

    Raises:
        DocumentError: It holds no list of tools.
    """
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]
    if isinstance(value, list):
        return value, {}
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        info = value.get("serverInfo")
        given = dict(info) if isinstance(info, dict) else {}
        given |= {key: value.get(key) for key in ("instructions", "nextCursor")}
        # Servers send empty names and versions, too, which a manifest cannot have.
        return value["tools"], {key: text for key, text in given.items() if isinstance(text, str) and text.strip()}
    raise DocumentError('it holds no list of tools: expected `{"tools": […]}`, a list, or a JSON-RPC response')


def manifest(entries: Sequence[Any], *, name: str, info: Mapping[str, Any] | None = None, prefix: str = "") -> Imported:
    """The manifest of a server that has the tools `entries`.

    Args:
        entries: The tools as `tools/list` gave them.
        name: The server's name.
        info: What else is known of the server, as `read` gives it.
        prefix: Put in front of each tool's name.
    """
    notes: list[str] = []
    known = info or {}
    if "nextCursor" in known:
        notes.append("the list is one page of several, as its `nextCursor` says; the tools of the others are not in it")
    server = {"name": name, "version": known.get("version", "0.0.0")}
    server |= {key: known[key] for key in ("title", "description", "instructions", "websiteUrl") if key in known}
    server = whole("the server", server, notes)
    made = {"toolwright": 1, "server": server, "tools": fixed(entries, notes, prefix)}
    notes += collisions.tell_apart(made)
    return Imported(made, tuple(notes))


def fixed(entries: Sequence[Any], notes: list[str], prefix: str = "") -> list[dict[str, Any]]:
    """The tools as a manifest has them.

    Args:
        entries: The tools as `tools/list` gave them.
        notes: Is told what was fixed.
        prefix: Put in front of each tool's name.
    """
    tools: list[dict[str, Any]] = []
    seen: set[str] = set()
    for index, given in enumerate(entries):
        if not isinstance(given, dict) or not isinstance(given.get("name"), str) or not given["name"]:
            notes.append(f"entry {index} is not a tool with a name, and was left out")
            continue
        tool = whole(f"entry {index}", given, notes)
        wire = prefix + tool["name"]
        if wire in seen:
            notes.append(f"tool `{wire}` is listed twice; the second was left out")
            continue
        seen.add(wire)
        made = {**tool, "name": wire}
        if made.pop("toolwright", None) is not None:
            notes.append(f"tool `{wire}` had a key `toolwright`, which is a manifest's own; it was left out")
        made["inputSchema"] = _dialect(wire, "inputSchema", _input(wire, tool.get("inputSchema"), notes), notes)
        if not isinstance(made.get("outputSchema", {}), dict):
            del made["outputSchema"]
            notes.append(f"tool `{wire}` had an `outputSchema` that is no schema; it was left out")
        if "outputSchema" in made:
            made["outputSchema"] = _dialect(wire, "outputSchema", made["outputSchema"], notes)
        tools.append(made)
    return tools


def _input(wire: str, schema: Any, notes: list[str]) -> Any:
    if not isinstance(schema, dict):
        notes.append(f"tool `{wire}` had no `inputSchema`; it got one that takes any arguments")
        return {"type": "object"}
    if "type" not in schema:
        notes.append(f"the `inputSchema` of tool `{wire}` had no `type`; it got `type: object`, as MCP requires")
        return {"type": "object", **schema}
    return schema


def _dialect(wire: str, role: Role, schema: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """The schema in a dialect that has it: its own, else the one that its `$schema` may mean, else the newest.

    One that no dialect has stays as it is, for `settling` to leave out.
    """
    wrong = _refusal(role, schema)
    if wrong is None:
        return schema
    written = schema.get("$schema")
    meant = sorted(
        dialects.DIALECTS, key=lambda dialect: not _is_nearly(written, dialect.uri)
    )  # stable: the newest first
    for dialect in meant:
        # In its place, if it has one: the order of keys is the schema's own.
        made = {**schema, "$schema": dialect.uri} if "$schema" in schema else {"$schema": dialect.uri, **schema}
        if _refusal(role, made) is None:
            notes.append(
                f"the `{role}` of tool `{wire}` is wrong in its own dialect ({wrong}), but right in {dialect.name}; "
                f"it got `$schema: {dialect.uri}`"
            )
            return made
    return schema


def _refusal(role: Role, schema: dict[str, Any]) -> str | None:
    """Why `check` will refuse a schema by itself, if it will."""
    found = metaschema.check(role, Place(""), schema, imported=True)
    return next((one.message for one in found if one.severity == "error"), None)


def _is_nearly(written: Any, uri: str) -> bool:
    """Whether a `$schema` that nobody serves is this one with another scheme, as in `https://…/draft-07/schema#`."""
    return isinstance(written, str) and written.partition("://")[2].rstrip("#") == uri.partition("://")[2].rstrip("#")


def whole(what: str, given: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """The value with U+FFFD for each half of a surrogate pair, which JSON can spell and UTF-8 cannot."""
    text = json.dumps(given, ensure_ascii=False)
    replaced = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if replaced == text:
        return given
    made: dict[str, Any] = json.loads(replaced)
    named = f"tool `{made['name']}`" if "inputSchema" in made else what
    notes.append(f"{named} had halves of surrogate pairs in its text; each became U+FFFD")
    return made


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
