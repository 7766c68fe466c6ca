"""Imported manifests that `check` accepts: what it would refuse is left out, and told.

Takes a manifest as values; gives it without the tools that an error is about, or that refer to a shared schema that an
error is about, and a note for each. It writes nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from toolwright import rules, schema, source
from toolwright.assembly import assemble
from toolwright.diagnostics import Place, has_errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolwright.diagnostics import Diagnostic

_FILE: Final = "manifest.json"


class _Memory:
    """A reader of one file that is only in memory."""

    def __init__(self, text: str) -> None:
        self._data = text.encode("utf-8", "replace")

    def read(self, path: str) -> bytes:
        if path != _FILE:
            raise FileNotFoundError(path)
        return self._data

    def glob(self, folder: str, pattern: str) -> list[str]:  # noqa: ARG002 - there is nothing beside the one file
        return []

    def within(self, path: str, folder: str) -> bool:  # noqa: ARG002 - it is inside by itself
        return path == _FILE


def accepted(manifest: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The manifest without the tools that `check` would refuse, and why each is gone."""
    notes: list[str] = []
    while errors := _errors(manifest):
        refused = _refused(manifest, errors)
        if not refused:
            raise AssertionError(f"an imported manifest is wrong beside its tools: {errors[0]}")
        for index, why in sorted(refused.items()):
            notes.append(f"tool `{manifest['tools'][index]['name']}` was left out: {why}")
        left = [tool for index, tool in enumerate(manifest["tools"]) if index not in refused]
        manifest = {**manifest, "tools": left, "schemas": used(manifest.get("schemas") or {}, left)}
    return manifest, notes


def _errors(manifest: dict[str, Any]) -> list[Diagnostic]:
    bundle, found = source.load(_FILE, _Memory(json.dumps(manifest)))
    if bundle is not None and not has_errors(found):
        found += schema.validate(bundle)
        if not has_errors(found):
            found += rules.check(assemble(bundle))
    return [one for one in found if one.severity == "error"]


def _refused(manifest: dict[str, Any], errors: Iterable[Diagnostic]) -> dict[int, str]:
    """The tools that errors are about, by index, with the reason."""
    refused: dict[int, str] = {}
    for error in errors:
        match error.at:
            case Place(_, ("tools", int(index), *_)):
                refused.setdefault(index, error.message)
            case Place(_, ("schemas", str(name), *_)):
                for index, tool in enumerate(manifest["tools"]):
                    if name in used(manifest["schemas"], [tool]):
                        refused.setdefault(index, f"its schema `{name}` cannot be used: {error.message}")
    return refused


def used(schemas: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The shared schemas that tools lead to."""
    found: set[str] = set()
    waiting: list[Any] = list(tools)
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
