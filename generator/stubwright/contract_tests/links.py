"""Reuses values from earlier results as arguments: IDs of objects on the server, and cursors that the same tool
returned.

A link is a result property that has an argument's name, like links in OpenAPI and Schemathesis: `plot`, `plot_id`, or
the `id` of an item in `plots` or from `list_plots`. Half of the valid calls use a generated value, so that rejections
are also tested. Cursors are opaque (MCP 2025-11-25, server/utilities/pagination), so only one call uses a generated
cursor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from stubwright.contract_tests.answers import Result
from stubwright.contract_tests.cases import EXAMPLE, Arguments, Case

_MOST_VALUES: Final = 50
"""The maximum number of values to store per name."""

_MOST_CANDIDATES: Final = 200
"""The maximum number of values to try for an argument that has a `pattern`, but a name that is in no result."""

_DEEPEST: Final = 8
_CURSOR_ARGUMENTS: Final = frozenset(
    {"cursor", "pagecursor", "nextcursor", "pagetoken", "nexttoken", "continuationtoken"}
)
_POSITION_ARGUMENTS: Final = frozenset({"after", "startingafter"})
"""Arguments that are cursors if the tool's results contain a cursor. Otherwise, `after` could be a date."""

_NEXT: Final = frozenset({*_CURSOR_ARGUMENTS, "next", "nextpage", "nextpagetoken", "endcursor"})
_IDENTIFIERS: Final = frozenset({"id", "uuid", "key", "slug"})
_WRAPPERS: Final = frozenset({"items", "results", "data", "result", "entries", "rows", "values"})
"""Generic names for properties that contain a list of items."""

_VERBS: Final = frozenset({"list", "get", "find", "search", "read", "fetch", "show", "query", "all", "create", "add"})


class Links:
    """The values in a server's results that other calls can use."""

    def __init__(self) -> None:
        self._values: dict[str, list[str | int]] = {}
        self._cursors: dict[str, list[str]] = {}

    def learn(self, tool: str, result: Result) -> None:
        """Store the IDs and cursors in a result."""
        if result.is_error or result.is_question:
            return
        value = result.value.get("structuredContent")
        if value is None:
            try:
                value = json.loads(result.text)
            except (ValueError, RecursionError):
                return  # plain text has no property names
        for cursor in _find_cursors(value):
            _keep(self._cursors.setdefault(tool, []), cursor)
        for name, found in _find_values(value, _find_noun(tool), 0):
            _keep(self._values.setdefault(name, []), found)

    def find_cursors(self, tool: str) -> Sequence[str]:
        """Return the cursors from earlier results of a tool, oldest first."""
        return self._cursors.get(tool, ())

    def find(self, tool: str, argument: str, schema: Any) -> Sequence[Any]:
        """Return values from earlier results for an argument, oldest first. Values for an array argument are one-item
        arrays.
        """
        if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
            return ()
        if isinstance(schema.get("items"), dict):
            return [[value] for value in self.find(tool, _to_singular(argument), schema["items"])]
        plain = _normalize(argument)
        noun = _find_noun(tool)
        names = [plain, f"{plain}id", plain.removesuffix("id")]
        names += [f"{noun}id", noun] if plain in _IDENTIFIERS else []
        known = next((self._values[name] for name in names if name in self._values), None)
        if known is None and isinstance(schema.get("pattern"), str):
            known = [value for values in self._values.values() for value in values][:_MOST_CANDIDATES]
        return known or ()


class Linker:
    """Inserts values from earlier results into one tool's cases."""

    def __init__(self, links: Links, tool: Mapping[str, Any], arguments: Arguments, seed: str) -> None:
        self._links = links
        self._name = str(tool.get("name"))
        self._arguments = arguments
        schema = tool.get("inputSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        self._properties: Mapping[str, Any] = properties if isinstance(properties, dict) else {}
        output = json.dumps(tool.get("outputSchema"))
        has_next = any(_normalize(name) in _NEXT for name in re.findall(r'"([^"]+)":', output))
        self._cursor = next((name for name in self._properties if _is_cursor(name, has_next=has_next)), None)
        self._chance = Random(f"{seed}/links")  # noqa: S311
        self._linked = self._invented = 0
        self._has_invented_cursor = False
        self._sent: set[str] = set()

    def link(self, case: Case) -> Case | None:
        """Return the case to send instead of a planned case. Return None if only the cursor differs from an earlier
        case.
        """
        linked = case if case.words == EXAMPLE else self._follow_cursor(self._link_values(case))
        key = json.dumps(linked.arguments, sort_keys=True)
        if linked is not case and key in self._sent and self._cursor in case.arguments:
            return None
        self._sent.add(key)
        return linked

    def _link_values(self, case: Case) -> Case:
        if not case.is_valid:
            return case
        known: dict[str, Sequence[Any]] = {}
        for name in case.arguments:
            values = self._links.find(self._name, name, self._properties.get(name)) if name != self._cursor else ()
            if fitting := [value for value in values if self._replace(case, {name: value}, ()) is not None]:
                known[name] = fitting
        chosen = {name: self._chance.choice(values) for name, values in known.items() if case.path[:1] != (name,)}
        linked = self._replace(case, chosen, ()) if chosen and self._linked <= self._invented else None
        if linked is None:
            self._invented += bool(known)
            return case
        self._linked += 1
        return linked

    def _follow_cursor(self, case: Case) -> Case:
        name = self._cursor
        if name is None or not isinstance(case.arguments.get(name), str):
            return case
        if case.is_valid and not self._has_invented_cursor:
            self._has_invented_cursor = True
            return case
        cursors = self._links.find_cursors(self._name)
        chosen = {name: self._chance.choice(cursors)} if cursors else {}
        return self._replace(case, chosen, () if chosen else (name,)) or case

    def _replace(self, case: Case, chosen: Mapping[str, Any], omitted: Sequence[str]) -> Case | None:
        """Return a case with some arguments replaced.

        Return None if the replacement changes whether the arguments are valid.
        """

        def change(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**{name: value for name, value in arguments.items() if name not in omitted}, **chosen}

        changed = self._arguments.classify(change(case.arguments), case.words)
        if changed is None or changed.is_valid is not case.is_valid:
            return None
        return replace(changed, path=case.path, base=None if case.base is None else change(case.base))


def order(tool: Mapping[str, Any]) -> tuple[int, int]:
    """Return a sort key for tools: tools with results that can contain IDs come first, tools that delete come last."""
    annotations = tool.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    schema = tool.get("inputSchema")
    needs = bool(schema.get("required")) if isinstance(schema, dict) else False
    if hints.get("readOnlyHint") is True:
        return 0, needs
    return (2 if hints.get("destructiveHint") is True else 1), 0


def _keep(values: list[Any], value: Any) -> None:
    if value not in values and len(values) < _MOST_VALUES:
        values.append(value)


def _is_cursor(name: str, *, has_next: bool) -> bool:
    plain = _normalize(name)
    return plain in _CURSOR_ARGUMENTS or (has_next and plain in _POSITION_ARGUMENTS)


def _find_cursors(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the cursors in a result, at the top level or in a top-level object such as `pageInfo`."""
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        if _normalize(name) in _NEXT and isinstance(inner, str) and inner and "://" not in inner:
            yield inner
    if depth == 0:
        for inner in value.values():
            yield from _find_cursors(inner, depth + 1)


def _find_values(value: Any, noun: str, depth: int) -> Iterator[tuple[str, str | int]]:
    """Yield the names and values of strings and integers in a result.

    `noun` names the things that the objects describe.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value:
            if _is_id(item):
                yield noun, item
            else:
                yield from _find_values(item, noun, depth + 1)
    elif isinstance(value, dict):
        for name, inner in value.items():
            plain = _normalize(name)
            if _is_id(inner):
                yield plain, inner
                if plain in _IDENTIFIERS:
                    yield f"{noun}id", inner
            elif isinstance(inner, dict | list):
                below = noun if plain in _WRAPPERS else _normalize(_to_singular(name))
                yield from _find_values(inner, below, depth + 1)


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _find_noun(tool: str) -> str:
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", tool)]
    nouns = [word for word in words if word not in _VERBS] or words
    return _normalize(_to_singular("".join(nouns[-1:])))


def _normalize(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _to_singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name
