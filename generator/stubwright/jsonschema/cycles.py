"""Graph algorithms for references: reachable nodes and cycles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def find_reachable(starts: Iterable[T], following: Callable[[T], Iterable[T]]) -> list[T]:
    """Return `starts` and the nodes reachable from them, in breadth-first order."""
    reached = dict.fromkeys(starts)
    waiting = [*reached]
    for node in waiting:  # grows during the loop
        new = [other for other in dict.fromkeys(following(node)) if other not in reached]
        reached |= dict.fromkeys(new)
        waiting += new
    return waiting


def find_cycles(following: Mapping[T, Iterable[T]]) -> list[tuple[T, ...]]:
    """Return the strongly connected components, each after the components that its nodes reference (Tarjan 1972).

    Nodes without references and nodes that reference only themselves are both one-node components.

    Args:
        following: Each node's targets. Every target must also be a key.
    """
    components: list[tuple[T, ...]] = []
    number: dict[T, int] = {}
    lowest: dict[T, int] = {}
    open_: dict[T, None] = {}
    for start in following:
        if start in number:
            continue
        path: list[tuple[T, Iterator[T]]] = []
        entering = [start]
        # Tarjan's algorithm as a loop, since a long chain of nodes could exceed Python's recursion limit.
        while path or entering:
            for here in entering:
                number[here] = lowest[here] = len(number)
                open_[here] = None
                path.append((here, iter(following[here])))
            entering = []
            here, rest = path[-1]
            # `rest` is an iterator, so a search that returns to this node resumes at the next target.
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
                components.append(tuple(reversed(members)))
    return components
