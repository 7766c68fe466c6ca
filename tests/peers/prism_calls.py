"""Calls of the tools of an imported API for Prism: the tools, and their arguments.

Each tool has three sets of arguments that are valid under its `inputSchema`: the required arguments, all arguments, and
all arguments with texts that are difficult to encode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import setitem
from random import Random
from typing import Any

import jsonschema_rs

from stubwright.jsonschema import instances

Json = Any

HOSTILE = ("a/b", "c & d", "#e", "f;g", "two  words", "Zürich 東京", "100% + more", "q=1&r=2", "i?j", "'\"")
"""Texts with special characters of paths, queries, headers and forms."""

_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

MOST = 60
"""The tools of an API that are called."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make: its tool, which of the three sets, and the arguments."""

    tool: str
    kind: str
    arguments: Mapping[str, Json]


def choose(tools: Sequence[Mapping[str, Json]], most: int = MOST) -> list[Mapping[str, Json]]:
    """Up to `most` of the tools, evenly from the first to the last."""
    count = min(most, len(tools))
    return [tools[index * len(tools) // count] for index in range(count)]


def calls(tool: Mapping[str, Json]) -> Iterator[Call]:
    """Return the calls of a tool from `tools/list`; an empty list if an argument has no possible value."""
    name, schema = tool["name"], tool["inputSchema"]
    required = [each for each in schema.get("required", ()) if each in schema.get("properties", {})]
    kept = {key: each for key, each in schema.get("properties", {}).items() if key in required}
    fewest = _made({**schema, "properties": kept, "maxProperties": len(required)}, f"{name} required")
    if fewest is not None:
        yield Call(name, "required", fewest)
    everything = _made({**schema, "required": [*schema.get("properties", {})]}, f"{name} all")
    if everything is not None:
        yield Call(name, "all", everything)
        yield Call(name, "hostile", hostile(schema, everything, Random(name)))


def _made(schema: Mapping[str, Json], seed: str) -> dict[str, Json] | None:
    try:
        made = instances.make(schema, seed, formats=True)
    except instances.UnsatisfiableError:
        return None
    return made if isinstance(made, dict) else None


def hostile(schema: Mapping[str, Json], arguments: Mapping[str, Json], chance: Random) -> dict[str, Json]:
    """The arguments with each text replaced by a hard one, where the schema accepts that."""
    accepts = jsonschema_rs.validator_for(_patterned({**schema}), validate_formats=True).is_valid
    made: dict[str, Json] = _copied(arguments)
    for put, old in list(_texts(made)):
        put(chance.choice(HOSTILE))
        if not accepts(made):
            put(old)
    return made


def _patterned(schema: Json) -> Json:
    """A schema in which `contentEncoding`, which is no assertion, is one."""
    if isinstance(schema, list):
        return [_patterned(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _patterned(inner) for key, inner in schema.items()}
    return {**made, "pattern": _BASE64} if schema.get("contentEncoding") == "base64" else made


def _copied(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _texts(value: Json) -> Iterator[tuple[Callable[[str], None], str]]:
    """Each text below a value, with what puts another in its place."""
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in [*places]:
        if isinstance(inner, str):
            yield partial(setitem, value, key), inner
        else:
            yield from _texts(inner)
