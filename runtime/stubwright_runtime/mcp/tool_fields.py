"""The tool fields that are compared to detect drift."""

from __future__ import annotations

from typing import Final

from ..schema.objects import as_objects
from ..values.json import Json

FIELDS: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")


def normalize_field(field: str, value: Json) -> Json:
    """Return a field's value without meaningless differences.

    Meaningless are `null` hints, `$schema`, which `stubwright import` may have corrected, and a missing `type: object`.
    """
    if field == "annotations" and isinstance(value, dict):
        return {key: hint for key, hint in value.items() if hint is not None} or None
    if field.endswith("Schema") and isinstance(value, dict):
        plain = {key: part for key, part in value.items() if key != "$schema"}
        return {"type": "object", **plain} if field == "inputSchema" else as_objects(plain)
    return value
