"""Selects parts of a response with JSON Pointers; the step `*` matches each item and property.

A scalar is selected even if the pointer has more steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..values.json import Json

STAR: Final = "*"
"""The step that matches each item and property. `~2` escapes it."""

Tree: TypeAlias = "Mapping[str | None, Tree]"
"""Selected branches by step; `None` is the step `*`. An empty tree selects everything."""

WHOLE: Final[Tree] = {}


def parse_steps(pointer: str) -> list[str | None]:
    """Split a pointer into steps (RFC 6901): `None` for `*`, and `*` for `~2`."""
    return [
        None if step == STAR else step.replace("~2", STAR).replace("~1", "/").replace("~0", "~")
        for step in pointer.split("/")[1:]
    ]


def make_tree(pointers: Iterable[str]) -> Tree:
    """Build the tree that selects these pointers."""
    tree: Tree | None = None
    for pointer in pointers:
        branch: Tree = WHOLE
        for step in reversed(parse_steps(pointer)):
            branch = {step: branch}
        tree = branch if tree is None else merge(tree, branch)
    return WHOLE if tree is None else tree


def merge(first: Tree, second: Tree) -> Tree:
    """Return the union of two trees."""
    if not first or not second:
        return WHOLE
    return {
        step: (
            merge(first[step], second[step])
            if step in first and step in second
            else first.get(step, second.get(step, WHOLE))
        )
        for step in dict.fromkeys((*first, *second))
    }


def select_below(tree: Tree, step: str) -> Tree | None:
    """Return the tree below a property or item, or `None` if the tree does not select that property or item."""
    if not tree:
        return WHOLE
    named, starred = tree.get(step), tree.get(None)
    if named is None or starred is None:
        return named if starred is None else starred
    return merge(named, starred)


def select(value: Any, tree: Tree) -> Any:
    """Return the parts of a JSON value that a tree selects."""
    here: Json = value
    if not tree:
        return here
    if isinstance(here, dict):
        branches = ((key, item, select_below(tree, key)) for key, item in here.items())
        return {key: select(item, inner) for key, item, inner in branches if inner is not None}
    if isinstance(here, list):
        items = ((item, select_below(tree, str(index))) for index, item in enumerate(here))
        return [select(item, inner) for item, inner in items if inner is not None]
    return here


def get_value(value: Any, pointer: str) -> Any:
    """Return the value at a pointer without `*`, or `None`. The step `-` is the last item."""
    here: Json = value
    for step in parse_steps(pointer):
        if isinstance(here, dict) and step is not None:
            here = here.get(step)
        elif isinstance(here, list) and here and step == "-":
            here = here[-1]
        elif isinstance(here, list) and step is not None and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return None
    return here
