"""Removes the parts of an imported manifest that `check` rejects, with a note for each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.compile import pipeline
from stubwright.compile.syntax import jsontext, yamlwriter
from stubwright.diagnostics import Diagnostic, Place
from stubwright.importers.document_reader import SingleFileReader, SourceError
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stubwright.diagnostics import Pointer

_FILE: Final = "manifest.json"
_PLACE: Final = re.compile(rf" \({re.escape(_FILE)}:\d+\)")
"""A location in the temporary manifest, which users never see."""
_SECTIONS: Final[Mapping[str, vocabulary.Section]] = {section.name: section for section in vocabulary.SECTIONS}
_NEEDED: Final = frozenset(
    {"name", "inputSchema", "arguments", "stubwright"} | {section.key for section in vocabulary.SECTIONS}
)
"""Keys that an entry requires: an invalid value removes the whole entry."""


class UnfixableError(SourceError):
    """The manifest is invalid even after the rejected parts were removed; the message explains why."""


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """A manifest that passes `check`.

    Attributes:
        manifest: The manifest without the rejected parts.
        notes: Notes on removed parts.
        warnings: The number of warnings that `check` reported.
        listed: The tools as `tools/list` sends them.
        unfillable: The names of tools for which no valid arguments were found.
    """

    manifest: Mapping[str, Any]
    notes: tuple[str, ...]
    warnings: int
    listed: tuple[Mapping[str, Any], ...] = ()
    unfillable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportResult:
    """An imported manifest and what to report about it.

    Attributes:
        manifest: The imported manifest.
        summary: A one-line summary.
        notes: Notes on changed and omitted parts.
        warnings: The number of warnings that `check` reported.
        cost: Notes on the size of `tools/list` and on options that reduce it.
        guesses: Notes on assumptions.
    """

    manifest: Mapping[str, Any]
    summary: str
    notes: tuple[str, ...]
    warnings: int
    cost: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()

    @property
    def all_notes(self) -> tuple[str, ...]:
        """All notes, in the order to print them."""
        return (*self.notes, *self.guesses, *self.cost)


def repair(manifest: Mapping[str, Any]) -> CheckedManifest:
    """Remove the manifest parts that `check` rejects.

    Raises:
        UnfixableError: The manifest is invalid even after these parts were removed.
    """
    repaired: dict[str, Any] = {**manifest}
    notes = [*_strip_controls(repaired), *_drop_unwritable(repaired)]
    # Other parts may depend on a removed one, so compile the rest again. Each round removes a part or raises.
    while True:
        checked = pipeline.compile_manifest(
            _FILE, SingleFileReader(_FILE, yamlwriter.format_imported(repaired, _FILE).encode())
        )
        errors = [diagnostic for diagnostic in checked.diagnostics if diagnostic.severity == "error"]
        errors = [attributed for error in errors for attributed in _attribute_to_tools(repaired, error)]
        if not errors:
            warnings = len(checked.diagnostics)
            unfillable = tuple(_list_unfillable(repaired, checked.diagnostics))
            tools = () if checked.manifest is None else checked.manifest.tools
            listed = tuple(tool.definition for tool in tools)
            return CheckedManifest(repaired, tuple(notes), warnings, listed, unfillable)
        notes += _drop_faulty(repaired, errors)
        if "schemas" in repaired:
            repaired["schemas"] = select_used(repaired["schemas"], repaired["tools"])


_SHOWN: Final = 5
"""The maximum number of tools listed in a note."""


def _list_unfillable(manifest: Mapping[str, Any], diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    for diagnostic in diagnostics:
        if diagnostic.code == "SW324" and isinstance(diagnostic.at, Place):
            yield manifest["tools"][diagnostic.at.pointer[1]]["name"]


def report_unfillable(names: Sequence[str]) -> list[str]:
    """Return a note on tools that reject every call."""
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    listed = ", ".join(f"`{name}`" for name in names[:_SHOWN]) + more
    count = "1 tool" if len(names) == 1 else f"{len(names)} tools"
    return [f"{count} may reject every call, because their schemas contradict themselves: {listed}"]


def select_used(schemas: Mapping[str, Any], parts: Any) -> dict[str, Any]:
    """Return the shared schemas that manifest parts reference, in their original order."""
    names: set[str] = set()
    waiting: list[Any] = [parts]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            reference = part.get("$ref")
            name = reference.removeprefix("#/schemas/") if isinstance(reference, str) else ""
            if name in schemas and name not in names:
                names.add(name)
                waiting.append(schemas[name])
    return {name: schema for name, schema in schemas.items() if name in names}


def _attribute_to_tools(manifest: Mapping[str, Any], error: Diagnostic) -> Iterator[Diagnostic]:
    """Yield an error in a shared schema once for each tool that references the schema. Yield other errors unchanged."""
    pointer = error.at.pointer if isinstance(error.at, Place) else ()
    if pointer[:1] != ("schemas",) or len(pointer) < 2:
        yield error
        return
    message = f"its schema `{pointer[1]}` is invalid: {error.message}"
    for index, tool in enumerate(manifest["tools"]):
        for field in vocabulary.SCHEMAS:
            if pointer[1] in select_used(manifest["schemas"], tool.get(field)):
                yield Diagnostic(error.code, message, Place(_FILE, ("tools", index, field)))


def _strip_controls(manifest: dict[str, Any]) -> Iterator[str]:
    name = manifest["server"]["name"]
    if isinstance(name, str) and _CONTROLS.search(name):
        visible = " ".join(_CONTROLS.sub(" ", name).split()) or "server"
        manifest["server"] = {**manifest["server"], "name": visible}
        yield f"the server's name contains control characters; it was changed to `{visible}`"


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _drop_unwritable(manifest: dict[str, Any]) -> Iterator[str]:
    """Remove values that no file can represent: non-finite numbers and deeply nested values."""
    server = {}
    for key, value in manifest["server"].items():
        if problems := jsontext.parse(json.dumps({"server": {key: value}}))[1]:
            yield f"`{key}` of the server was omitted: {problems[0].message}"
        else:
            server[key] = value
    manifest["server"] = server
    for section in vocabulary.SECTIONS:
        writable = []
        for entry in manifest.get(section.name, ()):
            problems = jsontext.parse(json.dumps({section.name: [entry]}))[1]
            if problems:
                yield f"{section.noun} `{entry[section.key]}` was omitted: {problems[0].message}"
            else:
                writable.append(entry)
        if section.name in manifest:
            manifest[section.name] = writable


def _drop_faulty(manifest: dict[str, Any], errors: list[Diagnostic]) -> Iterator[str]:
    reasons: dict[Pointer, str] = {}
    for error in errors:
        reasons.setdefault(_find_faulty_part(error), _PLACE.sub("", error.message))
    entries = {pointer for pointer in reasons if len(pointer) == 2 and pointer[0] in _SECTIONS}
    # Start at the end, so that earlier pointers stay valid.
    for pointer in sorted(reasons, key=lambda pointer: (str(pointer[0]), *_make_sort_key(pointer))):
        if pointer[:2] in entries and pointer not in entries:
            continue
        parent: Any = manifest
        for step in pointer[:-1]:
            parent = parent[step]
        description = _describe(manifest, pointer)
        del parent[pointer[-1]]
        yield f"{description} was omitted: {reasons[pointer]}"


def _make_sort_key(pointer: Pointer) -> tuple[int, int]:
    index = pointer[1]
    return (-index if isinstance(index, int) else 0, -len(pointer))


def _find_faulty_part(error: Diagnostic) -> Pointer:
    pointer = error.at.pointer if isinstance(error.at, Place) else ()
    if len(pointer) >= 2 and pointer[0] in _SECTIONS:
        return pointer[:3] if len(pointer) > 2 and pointer[2] not in _NEEDED else pointer[:2]
    if len(pointer) >= 2 and pointer[0] == "server" and pointer[1] not in ("name", "version"):
        return pointer[:2]
    raise UnfixableError(error.message)


def _describe(manifest: Mapping[str, Any], pointer: Pointer) -> str:
    if pointer[0] == "server":
        return f"`{pointer[1]}` of the server"
    section = _SECTIONS[str(pointer[0])]
    entry = manifest[section.name][pointer[1]]
    key = entry.get(section.key)
    name = f"{section.noun} `{key}`" if isinstance(key, str) else f"entry {pointer[1]} of `{section.name}`"
    return name if len(pointer) == 2 else f"`{pointer[2]}` of {name}"
