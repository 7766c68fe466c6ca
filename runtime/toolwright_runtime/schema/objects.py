"""Whether all instances of a schema are objects, where that can be read from the schema itself.

Takes a JSON Schema of any dialect with all that it refers to inside; follows references, and no others than JSON
Pointers into the same schema. What is not certain counts as no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from ..values.json import Json
from ..values.text import steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HIDING: Final = ("draft-04", "draft-06", "draft-07")
"""The dialects in which keywords beside `$ref` do not count."""

_DEEPEST: Final = 100
"""Steps from the root; what takes more is not certain."""


def describes_objects(schema: Json) -> bool:
    """Whether nothing but objects is valid."""
    return isinstance(schema, dict) and (schema.get("type") == "object" or _Reading(schema).is_for_objects(schema, 0))


def as_objects(schema: Any) -> Any:
    """The same schema with `type: object` at its root, where all its instances are objects; else as it is.

    Up to 2025-11-25 the root of an `outputSchema` says so itself (MCP 2025-11-25, schema, `Tool`). Where it did not, it
    stands first, and changes nothing of what is valid.
    """
    if not describes_objects(schema) or schema.get("type") == "object":
        return schema
    return {"type": "object", **{key: value for key, value in schema.items() if key != "type"}}


class _Reading:
    """One look at a schema; `known` are the answers for what references lead to."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root: Json = root
        self._hides = any(name in str(root.get("$schema")) for name in _HIDING)
        self._known: dict[str, bool] = {}

    def is_for_objects(self, schema: Json, depth: int) -> bool:
        """Whether nothing but objects is valid under a schema that is so many steps from the root."""
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return False
        reference = schema.get("$ref")
        if isinstance(reference, str) and self._hides:
            return self._leads_to_objects(reference, depth)
        kinds: Json = schema.get("type")
        if kinds in ("object", ["object"]):
            return True
        if isinstance(kinds, str) or (isinstance(kinds, list) and "object" not in kinds):
            return False  # nothing at all may be valid, which `type: object` would not say
        values: Sequence[Json] = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if values and all(isinstance(value, dict) for value in values):
            return True
        if isinstance(reference, str) and self._leads_to_objects(reference, depth):
            return True
        if any(self.is_for_objects(each, depth + 1) for each in _list(schema, "allOf")):
            return True
        choices = [_list(schema, keyword) for keyword in ("anyOf", "oneOf")]
        return any(each and all(self.is_for_objects(one, depth + 1) for one in each) for each in choices)

    def _leads_to_objects(self, reference: str, depth: int) -> bool:
        if reference not in self._known:
            self._known[reference] = False
            self._known[reference] = self.is_for_objects(self._target(reference), depth + 1)
        return self._known[reference]

    def _target(self, reference: str) -> Json:
        """What a reference leads to; nothing where that is not a place in the root, or below another `$id`."""
        if reference[:1] != "#" or reference[1:2] not in ("", "/"):
            return None
        here: Json = self._root
        for step in steps(unquote(reference[1:])):
            if isinstance(here, list) and step.isdecimal() and int(step) < len(here):
                here = here[int(step)]
            else:
                here = here.get(step) if isinstance(here, dict) else None
            if isinstance(here, dict) and isinstance(here.get("$id", here.get("id")), str):
                return here if here.get("type") == "object" else None
        return here


def _list(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    found: Json = schema.get(keyword)
    return found if isinstance(found, list) else []
