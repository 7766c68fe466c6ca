"""Detects schemas that allow only objects. Undecided cases count as schemas that allow other values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from ..values.json import Json
from ..values.text import split_pointer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HIDING: Final = ("draft-04", "draft-06", "draft-07")
"""The dialects in which keywords next to `$ref` are ignored."""

_DEEPEST: Final = 100
"""The maximum depth."""


def describes_objects(schema: Json) -> bool:
    """Return whether a schema allows only objects."""
    return isinstance(schema, dict) and (
        schema.get("type") == "object" or _SchemaPass(schema).is_for_objects(schema, 0)
    )


def as_objects(schema: Any) -> Any:
    """Add `type: object` at the root if all instances are objects, or return the schema unchanged.

    Up to 2025-11-25, MCP requires it in an `outputSchema` (schema, `Tool`). It does not change which values are valid.
    """
    if not describes_objects(schema) or schema.get("type") == "object":
        return schema
    return {"type": "object", **{key: value for key, value in schema.items() if key != "type"}}


class _SchemaPass:
    """One pass over a schema, with a cache of reference targets."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root: Json = root
        self._hides = any(name in str(root.get("$schema")) for name in _HIDING)
        self._known: dict[str, bool] = {}

    def is_for_objects(self, schema: Json, depth: int) -> bool:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return False
        reference = schema.get("$ref")
        if isinstance(reference, str) and self._hides:
            return self._leads_to_objects(reference, depth)
        kinds: Json = schema.get("type")
        if kinds in ("object", ["object"]):
            return True
        if isinstance(kinds, str) or (isinstance(kinds, list) and "object" not in kinds):
            return False  # if the schema allows no value, `type: object` would change that
        values: Sequence[Json] = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if values and all(isinstance(value, dict) for value in values):
            return True
        if isinstance(reference, str) and self._leads_to_objects(reference, depth):
            return True
        if any(self.is_for_objects(each, depth + 1) for each in _list(schema, "allOf")):
            return True
        choices = [_list(schema, keyword) for keyword in ("anyOf", "oneOf")]
        return any(
            each and all(self.is_for_objects(alternative, depth + 1) for alternative in each) for each in choices
        )

    def _leads_to_objects(self, reference: str, depth: int) -> bool:
        if reference not in self._known:
            # A circular reference adds no constraint.
            self._known[reference] = False
            self._known[reference] = self.is_for_objects(self._target(reference), depth + 1)
        return self._known[reference]

    def _target(self, reference: str) -> Json:
        """Return a reference's target, or `None` if the target is outside the schema or under another `$id`."""
        if reference[:1] != "#" or reference[1:2] not in ("", "/"):
            return None
        here: Json = self._root
        for step in split_pointer(unquote(reference[1:])):
            if isinstance(here, list) and step.isdecimal() and int(step) < len(here):
                here = here[int(step)]
            else:
                here = here.get(step) if isinstance(here, dict) else None
            if isinstance(here, dict) and isinstance(here.get("$id", here.get("id")), str):
                return here if here.get("type") == "object" else None
        return here


def _list(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    subschemas: Json = schema.get(keyword)
    return subschemas if isinstance(subschemas, list) else []
