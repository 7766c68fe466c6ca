"""Reads an operation's path, and repairs mismatches with its parameters (OpenAPI 3.1.1, "Path Templating")."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

from stubwright.http import VARIABLE
from stubwright.importers.openapi.documents import LocatedValue, UnsupportedError
from stubwright.importers.openapi.operations import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stubwright.importers.openapi.operations import In, Operation


_QUERY_FIELD: Final = re.compile(r"(?P<name>[^={}]+)=\{(?P<variable>[^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Path:
    """A path with its fixed query, its operation's parameters, and notes on errors in the document."""

    template: str
    fixed_query: str
    parameters: Sequence[Parameter]
    notes: Sequence[str]

    def write(self, names: Mapping[str, str]) -> str:
        """Return the URL for the `http` binding; `names` maps each path parameter to its argument.

        Raises:
            UnsupportedError: The path has braces that do not enclose a parameter.
        """
        lacking = [name for name in VARIABLE.findall(self.template) if name not in names]
        if lacking or re.search(r"[{}]", VARIABLE.sub("", self.template)):
            raise UnsupportedError(f"`{{{lacking[0] if lacking else ''}}}` in its path is not a parameter")
        path = VARIABLE.sub(lambda match: f"{{{names[match[1]]}}}", self.template)
        return f"{path}?{self.fixed_query}" if self.fixed_query else path


def read(operation: Operation, described: Iterable[Parameter]) -> Path:
    """Return an operation's path, with its declared parameters and a required string for each undeclared variable.

    `name={variable}` in a query after the path is a query parameter. A declared path parameter is omitted if the path
    lacks its variable.

    Raises:
        UnsupportedError: The URL is not a path.
    """
    url = operation.path.partition("#")[0]  # a fragment is never sent (RFC 9110, 7.1)
    template, _, query = url.partition("?")  # some documents distinguish operations by a fragment or a query
    if not template.startswith("/") or re.search(r"\s", query):
        raise UnsupportedError(f"`{url}` is not a path")
    by_place: dict[tuple[In, str], Parameter] = {
        (parameter.where, parameter.name): parameter for parameter in described
    }
    text = LocatedValue({"type": "string"}, operation.at.file, operation.at.pointer)
    inside = dict.fromkeys(name for name in VARIABLE.findall(template) if name)
    notes: list[str] = []
    fixed: list[str] = []
    placed: set[tuple[In, str]] = set()
    for field in query.split("&"):
        match = _QUERY_FIELD.fullmatch(field)
        if match is None:
            if re.search(r"[{}]", field):
                raise UnsupportedError(f"`{url}` is not a path")
            fixed.append(field)
            continue
        name, variable = unquote_plus(match["name"]), match["variable"]
        candidates: list[tuple[In, str]] = [("query", name), ("query", variable), ("path", variable)]
        taken = placed | ({("path", variable)} if variable in inside else set())
        source = next((place for place in candidates if place in by_place and place not in taken), None)
        parameter = _make_text(name, "query", text) if source is None else by_place.pop(source)
        by_place["query", name] = _to_query(parameter, name)
        placed.add(("query", name))
        notes.append(f"`{field}` in its path was read as the query parameter `{name}`")
    for where, name in list(by_place):
        if where == "path" and name not in inside:
            del by_place[where, name]
            notes.append(f"the parameter `{name}` was ignored, because its path has no `{{{name}}}`")
    for name in inside:
        by_place.setdefault(("path", name), _make_text(name, "path", text))
    return Path(template, "&".join(fixed), tuple(by_place.values()), tuple(notes))


def _make_text(name: str, where: In, schema: LocatedValue) -> Parameter:
    style, explode = ("simple", False) if where == "path" else ("form", True)
    return Parameter(name, where, True, style, explode, False, None, schema, None, False, None)


def _to_query(parameter: Parameter, name: str) -> Parameter:
    if parameter.where == "query":
        return replace(parameter, name=name)
    return replace(parameter, name=name, where="query", style="form", explode=True)
