"""When two JSON values are one.

Takes values as `json.loads` gives them. Python's own `==` takes `True` for 1.
"""

from __future__ import annotations

from .json import Json


def same(one: Json, two: Json) -> bool:
    """Whether two JSON values are one (JSON Schema 2020-12, 4.2.2): `1` is `1.0`, and `true` is not 1."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(value, two[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)
