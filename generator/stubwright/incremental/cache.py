"""Caches the generated code of error-free tools from one run to the next.

A cache that is unreadable or from another version counts as empty, and code with unexpected statements is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import from_json, to_json

from stubwright.codegen.models import inspection
from stubwright.codegen.pages.primitive_code import PrimitiveCode
from stubwright.pycode import Name

_FORMAT: Final = 5


@dataclass(frozen=True, slots=True)
class Cache:
    """The tools' code, keyed by the digest of their sources.

    `clean` has the digests of tools without diagnostics, which apply only to the digest `around`. `proven` has the
    digests of modules whose models were built.
    """

    units: Mapping[str, PrimitiveCode] = field(default_factory=dict)
    clean: frozenset[str] = frozenset()
    around: str = ""
    proven: frozenset[str] = frozenset()


def load(data: bytes | None) -> Cache:
    """Read the cache from a file's bytes; return an empty cache if they are unusable."""
    try:
        value = from_json(data or b"")
        if value["format"] != _FORMAT:
            return Cache()
        units = {}
        for digest, row in value["units"].items():
            with suppress(ValueError, TypeError):
                units[digest] = _unit(row)
        return Cache(units, frozenset(value["clean"]), str(value["around"]), frozenset(value["proven"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return Cache()


def dump(cache: Cache) -> bytes:
    """Return the bytes for a cache file."""
    units = {
        digest: [unit.module, unit.classes, unit.method, sorted(unit.names), unit.response, unit.task]
        for digest, unit in cache.units.items()
    }
    sets = {"clean": sorted(cache.clean), "proven": sorted(cache.proven)}
    return to_json({"format": _FORMAT, "around": cache.around, **sets, "units": units})


def _unit(row: Any) -> PrimitiveCode:
    module, classes, method, names, response, task = row
    return PrimitiveCode(
        module=inspection.parse_module(module),
        classes=tuple(map(Name, classes)),
        method=inspection.parse_method(method),
        names=frozenset(map(Name, names)),
        response=None if response is None else inspection.parse_method(response),
        task=None if task is None else inspection.parse_method(task),
    )
