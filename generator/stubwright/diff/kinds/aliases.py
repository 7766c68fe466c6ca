"""Compares aliases: renamed tools that keep their old name as an alias, and new, removed and changed aliases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.changes import Change, Subject

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diff.changes import Impact

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SCHEMAS: Final = ("else", "if", "not", "then")
_BY_NAME: Final = ("dependencies", "dependentRequired", "dependentSchemas", "properties")
"""Keywords with one entry per property."""


@dataclass(frozen=True, slots=True)
class Succession:
    """A removed tool, and the new tool that has the removed tool's name as an alias.

    `arguments` maps old argument names to new ones. `until` is the last server version with the alias.
    """

    old: ir.Tool
    new: ir.Tool
    arguments: Mapping[str, str]
    until: str | None

    def change(self) -> Change:
        """Return the change. It can break calls that contain both the old and the new name of an argument."""
        until = "" if self.until is None else f" up to version {self.until}"
        message = f"it was renamed to `{self.new.name}`, and callers can still use the old name{until}"
        impact: Impact = "compatible"
        why = None
        if both := self._find_open():
            impact = "may break"
            why = f"old calls may contain `{both}`, which the old schema left open and the server now rejects"
        subject = Subject(f"tool `{self.old.name}`", self.old.place, self.new.place).at("name")
        return subject.change("SW512", impact, message, why)

    def as_called(self) -> ir.Tool:
        """Return the old tool with the new argument names, so that its schema can be compared with the new tool's."""
        if not self.arguments:
            return self.old
        definition, input_ = self.old.definition, self.old.input
        renamed = {**definition, "inputSchema": rename_arguments(definition["inputSchema"], self.arguments)}
        return replace(
            self.old,
            definition=renamed,
            input=replace(input_, wire=rename_arguments(input_.wire, self.arguments), own=None),
        )

    def _find_open(self) -> str | None:
        schema = self.old.sent.wire
        if schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False:
            return None
        return next((new for old, new in self.arguments.items() if old != new and new not in self.arguments), None)


def find_successions(old: ir.Manifest, new: ir.Manifest) -> list[Succession]:
    """Return the removed tools with the tools that succeed them, in the new manifest's order."""
    before, now = {tool.name: tool for tool in old.tools}, {tool.name for tool in new.tools}
    return [
        Succession(before[alias["name"]], tool, alias.get("arguments") or {}, alias.get("removeAfter"))
        for tool in new.tools
        for alias in tool.aliases
        if alias["name"] in before and alias["name"] not in now
    ]


def rename_arguments(schema: Any, names: Mapping[str, str]) -> Any:
    """Rename arguments in an `inputSchema`.

    Reference targets stay unchanged, since other schemas can share them. Fewer changes are therefore proved harmless.
    """
    if not isinstance(schema, dict):
        return schema
    renamed = dict(schema)
    for keyword in _BY_NAME:
        if isinstance(schema.get(keyword), dict):
            renamed[keyword] = {
                names.get(name, name): _rename_dependents(keyword, value, names)
                for name, value in schema[keyword].items()
            }
    if isinstance(schema.get("required"), list):
        renamed["required"] = [names.get(name, name) for name in schema["required"]]
    for keyword in _LISTS:
        if isinstance(schema.get(keyword), list):
            renamed[keyword] = [rename_arguments(branch, names) for branch in schema[keyword]]
    for keyword in _SCHEMAS:
        if keyword in schema:
            renamed[keyword] = rename_arguments(schema[keyword], names)
    return renamed


def _rename_dependents(keyword: str, value: Any, names: Mapping[str, str]) -> Any:
    """Rename arguments in a keyword's entry for a property, except in `properties`."""
    if keyword == "properties":
        return value
    return [names.get(name, name) for name in value] if isinstance(value, list) else rename_arguments(value, names)


def compare(old: ir.Manifest, new: ir.Manifest) -> Iterator[Change]:
    """Yield changed and removed aliases, and new aliases other than old tools' names."""
    successions = {each.old.name: each for each in find_successions(old, new)}
    names = {tool.name for tool in new.tools}
    before, now = _map_aliases(old), _map_aliases(new)
    for name, (tool, alias) in before.items():
        if name in now:
            yield from _compare(name, before[name], now[name], successions.get(tool.name))
        elif name not in names:
            until = alias.get("removeAfter")
            why = "its removal was unannounced" if until is None else f"its removal after {until} was announced"
            message = f"the alias `{name}` was removed"
            yield _change(tool, "breaking", message, tool, None, f"callers must use `{tool.name}`; {why}")
    known = {tool.name for tool in old.tools}
    for name, (tool, _) in now.items():
        if name not in before and name not in known:
            yield _change(tool, "compatible", f"the alias `{name}` was added", None, tool)


def _compare(
    name: str,
    before: tuple[ir.Tool, Mapping[str, Any]],
    now: tuple[ir.Tool, Mapping[str, Any]],
    succession: Succession | None,
) -> Iterator[Change]:
    """Yield changes to an alias that is in both manifests. The tool with the alias can have a new name."""
    (old_tool, was), (tool, is_) = before, now
    step = {} if succession is None else succession.arguments
    expected = {old: step.get(new, new) for old, new in (was.get("arguments") or {}).items()}
    for old, new in step.items():
        if old not in (was.get("arguments") or {}).values():
            expected.setdefault(old, new)
    successor = old_tool.name if succession is None else succession.new.name
    if tool.name != successor:
        yield _change(tool, "may break", f"the alias `{name}` moved here from `{old_tool.name}`", old_tool, tool)
    elif (is_.get("arguments") or {}) != expected:
        yield _change(tool, "may break", f"the alias `{name}` now renames other arguments", old_tool, tool)
    elif was.get("removeAfter") != is_.get("removeAfter"):
        until = [
            f"up to version {each}" if each else "for good" for each in (was.get("removeAfter"), is_.get("removeAfter"))
        ]
        yield _change(
            tool, "cosmetic", f"the alias `{name}` was valid {until[0]}, and is now valid {until[1]}", old_tool, tool
        )


def _map_aliases(manifest: ir.Manifest) -> dict[str, tuple[ir.Tool, Mapping[str, Any]]]:
    return {alias["name"]: (tool, alias) for tool in manifest.tools for alias in tool.aliases}


def _change(
    tool: ir.Tool, impact: Impact, message: str, old: ir.Tool | None, new: ir.Tool | None, why: str | None = None
) -> Change:
    subject = Subject(f"tool `{tool.name}`", old.place if old else None, new.place if new else None)
    return subject.at("stubwright", "aliases").change("SW525", impact, message, why)
