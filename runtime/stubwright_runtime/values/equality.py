"""JSON equality, since Python's `==` treats `True` as 1."""

from __future__ import annotations

from .json import Json


def are_equal(left: Json, right: Json) -> bool:
    """Return whether two JSON values are equal (JSON Schema 2020-12, 4.2.2): `1` equals `1.0`, but not `true`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(are_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(are_equal, left, right))
    return bool(left == right)
