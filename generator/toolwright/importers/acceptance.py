"""The last step of an import: whatever `check` would refuse is left out, and told.

Takes a manifest made of what somebody else described, of whatever quality; gives one that passes `check`. It reads no
file: a schema that refers to one refers to nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolwright.compile import pipeline
from toolwright.compile.syntax import jsontext, yamlwriter
from toolwright.diagnostics import Diagnostic, Place
from toolwright.importers.reading import Only, RefusedError
from toolwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolwright.diagnostics import Pointer

_FILE: Final = "manifest.json"
_SECTIONS: Final[Mapping[str, vocabulary.Section]] = {section.name: section for section in vocabulary.SECTIONS}
_NEEDED: Final = frozenset(
    {"name", "inputSchema", "arguments", "toolwright"} | {one.key for one in vocabulary.SECTIONS}
)
"""What an entry cannot do without: where that is wrong, the whole entry is left out."""


class UnsettledError(RefusedError):
    """Nothing can be left out that would make it a manifest; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A manifest that passes `check`, what was left out for that, and how many warnings `check` has.

    `listed` has its tools as `tools/list` will send them.
    """

    manifest: Mapping[str, Any]
    notes: tuple[str, ...]
    warnings: int
    listed: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """What an import gives: a manifest, what is in it in a few words, what was fixed, and `check`'s warnings.

    `cost` says what the list of its tools will cost, and what would save some.
    """

    manifest: Mapping[str, Any]
    summary: str
    notes: tuple[str, ...]
    warnings: int
    cost: tuple[str, ...] = ()


def settle(manifest: Mapping[str, Any]) -> Settled:
    """Leave out what `check` refuses.

    Raises:
        UnsettledError: That does not help.
    """
    made: dict[str, Any] = {**manifest}
    notes = [*_unseen(made), *_unwritable(made)]
    while True:
        checked = pipeline.compile_manifest(_FILE, Only(_FILE, yamlwriter.imported(made, _FILE).encode()))
        errors = [found for found in checked.diagnostics if found.severity == "error"]
        errors = [meant for error in errors for meant in _meant(made, error)]
        if not errors:
            warnings = len(checked.diagnostics)
            tools = () if checked.manifest is None else checked.manifest.tools
            return Settled(made, tuple(notes), warnings, tuple(tool.definition for tool in tools))
        notes += _without(made, errors)
        if "schemas" in made:
            made["schemas"] = used(made["schemas"], made["tools"])


def used(schemas: Mapping[str, Any], parts: Any) -> dict[str, Any]:
    """The shared schemas that parts of a manifest lead to, in their order."""
    found: set[str] = set()
    waiting: list[Any] = [parts]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()
            reference = one.get("$ref")
            name = reference.removeprefix("#/schemas/") if isinstance(reference, str) else ""
            if name in schemas and name not in found:
                found.add(name)
                waiting.append(schemas[name])
    return {name: schema for name, schema in schemas.items() if name in found}


def _meant(made: Mapping[str, Any], error: Diagnostic) -> Iterator[Diagnostic]:
    """An error about a shared schema is one about the schemas of tools that lead to it; any other is itself."""
    pointer = error.at.pointer if isinstance(error.at, Place) else ()
    if pointer[:1] != ("schemas",) or len(pointer) < 2:
        yield error
        return
    message = f"its schema `{pointer[1]}` is wrong: {error.message}"
    for index, tool in enumerate(made["tools"]):
        for field in vocabulary.SCHEMAS:
            if pointer[1] in used(made["schemas"], tool.get(field)):
                yield Diagnostic(error.code, message, Place(_FILE, ("tools", index, field)))


def _unseen(made: dict[str, Any]) -> Iterator[str]:
    """Take characters that nobody sees out of the server's name."""
    name = made["server"]["name"]
    if isinstance(name, str) and _CONTROLS.search(name):
        seen = " ".join(_CONTROLS.sub(" ", name).split()) or "server"
        made["server"] = {**made["server"], "name": seen}
        yield f"the server's name has control characters; here it is `{seen}`"


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _unwritable(made: dict[str, Any]) -> Iterator[str]:
    """Leave out what no file can hold: numbers that JSON has not, and what is nested too deeply."""
    server = {}
    for key, value in made["server"].items():
        if problems := jsontext.parse(json.dumps({"server": {key: value}}))[1]:
            yield f"`{key}` of the server was left out: {problems[0].message}"
        else:
            server[key] = value
    made["server"] = server
    for section in vocabulary.SECTIONS:
        kept = []
        for entry in made.get(section.name, ()):
            problems = jsontext.parse(json.dumps({section.name: [entry]}))[1]
            if problems:
                yield f"{section.noun} `{entry[section.key]}` was left out: {problems[0].message}"
            else:
                kept.append(entry)
        if section.name in made:
            made[section.name] = kept


def _without(made: dict[str, Any], errors: list[Diagnostic]) -> Iterator[str]:
    """Leave out what the errors are about; a note for each part."""
    reasons: dict[Pointer, str] = {}
    for error in errors:
        reasons.setdefault(_part(error), error.message)
    entries = {pointer for pointer in reasons if len(pointer) == 2 and pointer[0] in _SECTIONS}
    # From the end, so that the places of what is still to go stay as they are.
    for pointer in sorted(reasons, key=lambda pointer: (str(pointer[0]), *_descending(pointer))):
        if pointer[:2] in entries and pointer not in entries:
            continue
        holder: Any = made
        for step in pointer[:-1]:
            holder = holder[step]
        shown = _shown(made, pointer)
        del holder[pointer[-1]]
        yield f"{shown} was left out: {reasons[pointer]}"


def _descending(pointer: Pointer) -> tuple[int, int]:
    index = pointer[1]
    return (-index if isinstance(index, int) else 0, -len(pointer))


def _part(error: Diagnostic) -> Pointer:
    """The part of the manifest that goes, so that an error does."""
    pointer = error.at.pointer if isinstance(error.at, Place) else ()
    if len(pointer) >= 2 and pointer[0] in _SECTIONS:
        return pointer[:3] if len(pointer) > 2 and pointer[2] not in _NEEDED else pointer[:2]
    if len(pointer) >= 2 and pointer[0] == "server" and pointer[1] not in ("name", "version"):
        return pointer[:2]
    raise UnsettledError(error.message)


def _shown(made: Mapping[str, Any], pointer: Pointer) -> str:
    if pointer[0] == "server":
        return f"`{pointer[1]}` of the server"
    section = _SECTIONS[str(pointer[0])]
    entry = made[section.name][pointer[1]]
    called = entry.get(section.key)
    name = f"{section.noun} `{called}`" if isinstance(called, str) else f"entry {pointer[1]} of `{section.name}`"
    return name if len(pointer) == 2 else f"`{pointer[2]}` of {name}"
