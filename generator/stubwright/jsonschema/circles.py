"""Finds reference cycles: the strongly connected components of a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def find_circles(following: Mapping[T, Iterable[T]]) -> list[tuple[T, ...]]:
    """Return the strongly connected components, each after the components that it references (Tarjan 1972).

    A node with only a direct reference to itself is a separate component, like a node without any.

    Args:
        following: The targets of each node, all of them among the keys.
    """
    circles: list[tuple[T, ...]] = []
    number: dict[T, int] = {}
    lowest: dict[T, int] = {}
    open_: dict[T, None] = {}
    for start in following:
        if start in number:
            continue
        path: list[tuple[T, Iterator[T]]] = []
        entering = [start]
        # Tarjan's recursion as a loop: a chain of nodes may exceed Python's recursion limit.
        while path or entering:
            for here in entering:
                number[here] = lowest[here] = len(number)
                open_[here] = None
                path.append((here, iter(following[here])))
            entering = []
            here, rest = path[-1]
            # `rest` is an iterator that stays on the path, so that the search goes on here when it comes back to this
            # node.
            for other in rest:
                if other not in number:
                    entering = [other]
                    break
                if other in open_:
                    lowest[here] = min(lowest[here], number[other])
            if entering:
                continue
            path.pop()
            if path:
                above = path[-1][0]
                lowest[above] = min(lowest[above], lowest[here])
            if lowest[here] == number[here]:
                members: list[T] = []
                while not members or members[-1] != here:
                    members.append(open_.popitem()[0])
                circles.append(tuple(reversed(members)))
    return circles
