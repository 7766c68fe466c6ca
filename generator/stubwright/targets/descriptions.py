"""Describes the rules of targets in words, for `stubwright targets` and the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stubwright.targets.table import Rule


def describe(rule: Rule) -> str:
    """Describe a rule in a phrase, such as `tools have a description`."""
    return _WORDS[rule.kind](rule.value)


def _list(words: Any) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _describe_range(bounds: Any) -> str:
    longest = bounds[1]
    if longest is None:
        return "tools have a description"
    return f"descriptions have at most {longest:,} characters"


_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "name": lambda pattern: f"tool names match `{pattern}`",
    "long name": lambda value: f"`{value[0]}` has at most {value[1]} characters",
    "description": _describe_range,
    "titled": lambda among: f"tools have a `title`{' in their `annotations`' if among else ''}",
    "any hint": lambda names: f"tools set one of {_list(names)}",
    "hints": lambda names: f"tools set all of {_list(names)}",
    "reads or destroys": lambda _: "tools that change something are `destructiveHint: true`",
    "property": lambda pattern: f"argument and property names match `{pattern}`",
    "root property": lambda pattern: f"argument names match `{pattern}`",
    "plain root": lambda keywords: f"no {_list(keywords)} at the root",
    "without": lambda keywords: f"no {_list(keywords)}",
    "ignores": lambda keywords: f"not passed on to models: {_list(keywords)}",
    "ignores at root": lambda keywords: f"not passed on to models, at the root: {_list(keywords)}",
    "string enums": lambda _: "`enum` values are strings",
    "items": lambda _: "arrays declare their items",
    "filled": lambda _: "no `properties: {}`",
    "declared": lambda _: "each `inputSchema` has `properties`",
    "never empty": lambda _: "required lists, objects and values are never empty or null",
    "one type": lambda _: "no lists of types",
    "typed arguments": lambda keywords: (
        f"each argument has one of {_list(keywords)}" if keywords else "no argument is `true`"
    ),
    "flat": lambda _: "objects in arguments do not declare properties",
    "closed": lambda _: "all objects have `additionalProperties: false`",
    "all required": lambda _: "all properties are required",
    "typed": lambda _: "all schemas have a type",
    "least items": lambda allowed: f"`minItems` is {' or '.join(map(str, allowed))}",
    "formats": lambda names: f"`format` is one of {_list(names)}",
    "no recursion": lambda _: "no schema contains itself",
    "levels": lambda most: f"objects are nested at most {most} levels deep",
    "properties": lambda most: f"at most {most:,} properties in a schema",
    "characters": lambda most: f"names, enums and constants in a schema have at most {most:,} characters",
    "enum values": lambda most: f"at most {most:,} enum values in a schema",
    "large enum": lambda value: f"an enum with more than {value[0]} values has at most {value[1]:,} characters",
    "draft-07": lambda _: "schemas are valid in draft-07",
    "tools": lambda most: f"at most {most} tools",
    "optional properties": lambda most: f"at most {most} optional properties across all tools",
    "unions": lambda most: f"at most {most} unions across all tools",
}
