"""Converts a saved `tools/list` result to a manifest, with a note for each fix."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.compile.syntax import jsontext
from stubwright.diagnostics import Place
from stubwright.diagnostics.suggestions import shorten
from stubwright.importers import collisions, document_reader, error_recovery
from stubwright.importers.document_reader import DocumentError
from stubwright.jsonschema import dialects, metaschema
from stubwright_runtime.values.json import refuse_constant
from stubwright_runtime.values.text import replace_surrogates

if TYPE_CHECKING:
    from stubwright.compile.source import Reader
    from stubwright.compile.syntax.positions import Problem
    from stubwright.jsonschema.locations import Role

NO_VERSION: Final = "0.0.0"
"""The version of a server that does not report one."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A manifest, and notes on fixes."""

    manifest: Mapping[str, Any]
    notes: tuple[str, ...]


def parse(text: str, name: str, notes: list[str]) -> tuple[Any, list[Problem]]:
    """Parse a saved list; return its value, or its problems.

    Deep nesting, large numbers and lone surrogates are accepted here, since the affected tools are fixed or omitted
    later.

    Args:
        text: The saved list.
        name: The file, for messages.
        notes: Receives a note for each kind of recovered error.
    """
    value, problems = jsontext.parse(text)
    if not problems:
        return value, []
    others = [problem for problem in problems if not _concerns_one_tool(text, problem)]
    if others:
        meant = error_recovery.recover_errors(text, others, name, is_json=True)
        if meant is None:
            return None, problems
        notes += meant[1]
        return meant[0], []
    try:
        return json.loads(text, parse_constant=refuse_constant), []
    except (ValueError, RecursionError):
        return None, problems


def _concerns_one_tool(text: str, problem: Problem) -> bool:
    written = text[problem.start : problem.end]
    is_large = written not in jsontext.CONSTANTS and not written.lstrip("-").isdigit()  # Python rejects longer integers
    return problem.code in ("SW008", "SW010") or (problem.code == "SW007" and is_large)


def read(text: str, name: str = "the list", notes: list[str] | None = None) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the tools in `text`, as returned by `find_tools`.

    Args:
        text: The saved list.
        name: The file, for messages.
        notes: Receives a note for each kind of recovered error.

    Raises:
        DocumentError: The text is not JSON or does not contain a list of tools.
    """
    value, problems = parse(text, name, [] if notes is None else notes)
    if problems:
        raise DocumentError(problems[0].message)
    return find_tools(value)


def read_file(path: str, reader: Reader, notes: list[str]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the tools in a file, as returned by `find_tools`.

    Args:
        path: The file to read.
        reader: Reads the file.
        notes: Receives a note for each kind of recovered error.

    Raises:
        DocumentError: The file cannot be read, is not JSON, or does not contain a list of tools.
    """
    document = document_reader.read(
        path, reader, lambda text: parse(text, path, notes), "a saved tools/list result in JSON"
    )
    return find_tools(document.value)


def find_tools(value: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the tools in a value, and its other fields.

    These are the non-empty strings in `serverInfo`, `instructions` and `nextCursor`.

    Raises:
        DocumentError: The value does not contain a list of tools.
    """
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]
    if isinstance(value, list):
        return value, {}
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        info = value.get("serverInfo")
        texts = dict(info) if isinstance(info, dict) else {}
        texts["instructions"] = value.get("instructions")
        # Some servers send empty names and versions, which are invalid in a manifest.
        server = {key: text for key, text in texts.items() if isinstance(text, str) and text.strip()}
        server.pop("nextCursor", None)
        cursor = value.get("nextCursor")
        return value["tools"], server if cursor is None else {**server, "nextCursor": cursor}
    raise DocumentError('it does not have a list of tools: expected `{"tools": […]}`, a list, or a JSON-RPC response')


def report_pages(info: Mapping[str, Any]) -> list[str]:
    """Return a note if a list is only one of several pages.

    Args:
        info: The fields that `find_tools` returns; an empty `nextCursor` is also a cursor (MCP, pagination).
    """
    if "nextCursor" not in info:
        return []
    return ["the list has a `nextCursor`, so it is one of several pages; the tools on the other pages are missing"]


def make_manifest(
    entries: Sequence[Any], *, name: str, info: Mapping[str, Any] | None = None, prefix: str = ""
) -> Draft:
    """Return a manifest of a server with these tools.

    Args:
        entries: The tools as listed by `tools/list`.
        name: The server's name.
        info: The server's other fields, as returned by `read`.
        prefix: A prefix for names of tools.
    """
    info_ = info or {}
    notes = report_pages(info_)
    server = {"name": name, "version": info_.get("version", NO_VERSION)}
    server |= {key: info_[key] for key in ("title", "description", "instructions", "websiteUrl") if key in info_}
    server = fix_text("the server", server, notes)
    draft = {"stubwright": 1, "server": server, "tools": fix(entries, notes, prefix)}
    notes += collisions.resolve(draft)
    return Draft(draft, tuple(notes))


def fix(entries: Sequence[Any], notes: list[str], prefix: str = "") -> list[dict[str, Any]]:
    """Convert listed tools to manifest entries.

    Args:
        entries: The tools as listed by `tools/list`.
        notes: Receives a note for each fix.
        prefix: A prefix for names of tools.
    """
    tools: list[dict[str, Any]] = []
    names: set[str] = set()
    for index, raw in enumerate(entries):
        if not isinstance(raw, dict) or not isinstance(raw.get("name"), str) or not raw["name"]:
            notes.append(f"entry {index} is not a tool with a name, and was omitted")
            continue
        tool = fix_text(f"tool `{raw['name']}`", raw, notes)
        wire = prefix + tool["name"]
        if wire in names:
            notes.append(f"tool `{wire}` is listed twice; the second was omitted")
            continue
        names.add(wire)
        fixed = {**tool, "name": wire}
        if fixed.pop("stubwright", None) is not None:
            notes.append(f"tool `{wire}` had a key `stubwright`, which only manifests use; it was omitted")
        fixed["inputSchema"] = _find_dialect(wire, "inputSchema", _fix_input(wire, tool, notes), notes)
        if not isinstance(fixed.get("outputSchema", {}), dict):
            del fixed["outputSchema"]
            notes.append(f"tool `{wire}` had an `outputSchema` that is not a schema; it was omitted")
        if "outputSchema" in fixed:
            fixed["outputSchema"] = _find_dialect(wire, "outputSchema", fixed["outputSchema"], notes)
        tools.append(fixed)
    return tools


def _fix_input(wire: str, tool: Mapping[str, Any], notes: list[str]) -> Any:
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        # Unlike JSON Schema, MCP does not allow booleans here.
        had = f"`{shorten(json.dumps(schema))}` as its" if "inputSchema" in tool else "no"
        notes.append(f"tool `{wire}` had {had} `inputSchema`; a schema that accepts any arguments was used")
        return {"type": "object"}
    if "type" not in schema:
        notes.append(f"the `inputSchema` of tool `{wire}` had no `type`; `type: object` was added, as MCP requires")
        return {"type": "object", **schema}
    return schema


def _find_dialect(wire: str, role: Role, schema: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Return the schema in the first dialect that accepts it: its own, a similar one, or the newest.

    A schema that no dialect accepts stays unchanged, and `acceptance` removes the schema.
    """
    problem = _find_problem(role, schema)
    if problem is None:
        return schema
    uri = schema.get("$schema")
    candidates = sorted(
        dialects.DIALECTS, key=lambda dialect: not _is_nearly(uri, dialect.uri)
    )  # a stable sort: newest first
    for dialect in candidates:
        # Keep the position of an existing `$schema`.
        candidate = {**schema, "$schema": dialect.uri} if "$schema" in schema else {"$schema": dialect.uri, **schema}
        if _find_problem(role, candidate) is None:
            notes.append(
                f"the `{role}` of tool `{wire}` is invalid in its own dialect ({problem}), but valid in "
                f"{dialect.name}; `$schema` was set to `{dialect.uri}`"
            )
            return candidate
    return schema


def _find_problem(role: Role, schema: dict[str, Any]) -> str | None:
    diagnostics = metaschema.check(role, Place(""), schema, imported=True)
    return next((diagnostic.message for diagnostic in diagnostics if diagnostic.severity == "error"), None)


def _is_nearly(written: Any, uri: str) -> bool:
    """Return whether a `$schema` differs only in its URL scheme or fragment, as in `https://…/draft-07/schema#`."""
    return isinstance(written, str) and written.partition("://")[2].rstrip("#") == uri.partition("://")[2].rstrip("#")


def fix_text(subject: str, value: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Replace lone surrogates, which JSON allows but UTF-8 does not, with U+FFFD."""
    written = json.dumps(value, ensure_ascii=False)
    replaced = replace_surrogates(written)
    if replaced == written:
        return value
    replaced_value: dict[str, Any] = json.loads(replaced)
    notes.append(f"{replace_surrogates(subject)} contained lone surrogates; each was replaced with U+FFFD")
    return replaced_value
