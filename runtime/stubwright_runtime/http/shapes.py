"""Builds a tool's result from parts of a response: the body, headers, and items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..values.json import Json
from .selections import WHOLE, Tree, make_tree, parse_steps, select, select_below
from .styles import DELIMITERS

if TYPE_CHECKING:
    from .responses import Answer

_TRUTH: Final = {"true": True, "false": False}
_LONGEST: Final = 40  # the maximum number of digits of a number in a header


class PageShape(Protocol):
    """The locations of a page's items and of the next cursor in a response."""

    @property
    def where(self) -> str:
        """The JSON Pointer to the items in the response body."""
        ...

    def find_items(self, body: Any) -> Sequence[Any]:
        """Return the page's items from the response body."""
        ...

    def find_cursor(self, answer: Answer, body: Any) -> str | None:
        """Return the next page's cursor, or `None` if this is the last page."""
        ...


class Shape:
    """The response parts from which a tool's result is built."""

    def __init__(self, http: Mapping[str, Any]) -> None:
        """Read the selected parts from a tool's `http`."""
        self._tree = make_tree(http.get("select") or ())
        self._headers: Mapping[str, Any] | None = http.get("responseHeaders")

    def shape(self, answer: Answer, body: Any, following: PageShape | None) -> Any:
        """Build a tool's result from the selected parts of a response.

        Args:
            answer: The response.
            body: The response's JSON.
            following: The shape of the page, if the tool is paginated.

        Raises:
            SchemaMismatch: The items are not a list, or the API's link to its next page cannot be followed.
        """
        if following is not None:
            shaped: dict[str, Any] = {"items": select(following.find_items(body), _walk(self._tree, following.where))}
            cursor = following.find_cursor(answer, body)
            if cursor is not None:
                shaped["next"] = cursor
        elif self._headers is None:
            return select(body, self._tree)
        else:
            shaped = {"body": select(body, self._tree)}
        if self._headers is not None:
            shaped["headers"] = dict(_read(self._headers, answer.headers))
        return shaped


def _walk(tree: Tree, pointer: str) -> Tree:
    here: Tree | None = tree
    for step in parse_steps(pointer):
        here = None if here is None or step is None else select_below(here, step)
    return here or WHOLE


def _read(wanted: Mapping[str, Any], headers: Mapping[str, str]) -> list[tuple[str, Json]]:
    """Return the selected headers of the response, with values converted to the declared types."""
    values: list[tuple[str, Json]] = []
    for name, spec in wanted.items():
        header: Mapping[str, str] = {"name": spec} if isinstance(spec, str) else spec
        text = headers.get(header["name"].lower())
        if text is not None:
            delimiter = DELIMITERS.get(header.get("style", "simple"), ",")
            values.append((name, _convert_type(text.strip(), header.get("type", "string"), delimiter)))
    return values


def _convert_type(text: str, kind: str, delimiter: str) -> Json:
    """Convert a header's value to the JSON type `kind`. Return an invalid value unchanged."""
    if kind == "array":
        return [item for part in text.split(delimiter) if (item := part.strip())]
    if kind == "boolean":
        return _TRUTH.get(text.lower(), text)
    if kind in ("integer", "number") and len(text) <= _LONGEST:
        try:
            value = int(text) if kind == "integer" else float(text)
        except ValueError:
            return text
        return value if math.isfinite(value) else text
    return text
