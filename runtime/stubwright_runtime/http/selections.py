"""Which parts of a response are kept: JSON Pointers in which `*` is each item and each property.

Takes the pointers of a manifest and a JSON value; gives the value with what they lead to, in the same structure. What
is neither an object nor an array is not taken apart: where a pointer leads further, it stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..values.json import Json

STAR: Final = "*"
"""The step to each item and each property. A property that is called so is written `~2`."""

Tree: TypeAlias = "Mapping[str | None, Tree]"
"""What is kept below each step; `None` is the step `*`. Where there is no step, all is kept."""

WHOLE: Final[Tree] = {}


def steps_of(pointer: str) -> list[str | None]:
    """Return the steps of a pointer (RFC 6901), with `None` for `*`, and with `~2` for a literal `*`."""
    return [
        None if step == STAR else step.replace("~2", STAR).replace("~1", "/").replace("~0", "~")
        for step in pointer.split("/")[1:]
    ]


def tree_of(pointers: Iterable[str]) -> Tree:
    """Return what pointers keep."""
    tree: Tree | None = None
    for pointer in pointers:
        branch: Tree = WHOLE
        for step in reversed(steps_of(pointer)):
            branch = {step: branch}
        tree = branch if tree is None else merged(tree, branch)
    return WHOLE if tree is None else tree


def merged(first: Tree, second: Tree) -> Tree:
    """Return what either keeps."""
    if not first or not second:
        return WHOLE
    return {
        step: (
            merged(first[step], second[step])
            if step in first and step in second
            else first.get(step, second.get(step, WHOLE))
        )
        for step in dict.fromkeys((*first, *second))
    }


def below(tree: Tree, step: str) -> Tree | None:
    """Return what is kept below a property or an item; `None` if it is not kept itself."""
    if not tree:
        return WHOLE
    named, starred = tree.get(step), tree.get(None)
    if named is None or starred is None:
        return named if starred is None else starred
    return merged(named, starred)


def select(value: Any, tree: Tree) -> Any:
    """Return what a tree keeps of a JSON value."""
    here: Json = value
    if not tree:
        return here
    if isinstance(here, dict):
        branches = ((key, item, below(tree, key)) for key, item in here.items())
        return {key: select(item, inner) for key, item, inner in branches if inner is not None}
    if isinstance(here, list):
        items = ((item, below(tree, str(index))) for index, item in enumerate(here))
        return [select(item, inner) for item, inner in items if inner is not None]
    return here


def value_at(value: Any, pointer: str) -> Any:
    """Return what a pointer without `*` leads to; the step `-` is the last item. `None` if it leads nowhere."""
    here: Json = value
    for step in steps_of(pointer):
        if isinstance(here, dict) and step is not None:
            here = here.get(step)
        elif isinstance(here, list) and here and step == "-":
            here = here[-1]
        elif isinstance(here, list) and step is not None and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return None
    return here
