"""Which operations become tools, and what the tools are called.

Takes operations and what the user asked for; gives each that is wanted a name that every client takes. A name depends
on its operation alone, unless two would be one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from toolwright import naming
from toolwright.importers.openapi.operations import METHODS
from toolwright.importers.reading import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolwright.importers.openapi.operations import Operation

_REFUSED = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 64


class SelectionError(RefusedError):
    """What the user asked for fits no operation; the message says what."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user wants: patterns of operations to take and to leave, new names, a prefix, and an order.

    A pattern is one of shells (`*` is any text, also with `/`), for an `operationId`, a tag, a path, or a method with a
    path (`GET /pets/*`, `* /pets`); a method alone is in capitals (`GET`). The keys of `rename` are `operationId`s, or
    the names that tools would have. `by_tag` puts the tools of a tag together, with the tag in front of their names.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    by_tag: bool = False


def select(
    operations: Iterable[Operation], selection: Selection, tags: Sequence[str] = ()
) -> list[tuple[str, Operation, bool]]:
    """The operations that are wanted, with the names of their tools, and whether another's took the usual name.

    Args:
        operations: All operations.
        selection: What the user wants.
        tags: The tags that the document lists, which are ordered so.

    Raises:
        SelectionError: A pattern or a rename fits no operation, or two tools would have one name that was asked for.
    """
    every = list(operations)
    for pattern in (*selection.include, *selection.exclude):
        if not any(_fits(operation, pattern) for operation in every):
            hint = f"; a method is in capitals: `{pattern.upper()}`" if pattern in METHODS else ""
            raise SelectionError(f"`{pattern}` fits no `operationId`, tag, path or method{hint}")
    wanted = [operation for operation in every if _is_wanted(operation, selection)]
    if selection.by_tag:
        order = {tag: index for index, tag in enumerate(dict.fromkeys([*tags, *_tags(wanted)]))}
        wanted.sort(key=lambda operation: order[operation.tags[0]] if operation.tags else len(order))
    plain = [_tagged(operation) if selection.by_tag else _plain(operation) for operation in wanted]
    meetings = Counter(plain)
    taken = set(plain)
    named: list[tuple[str, Operation, bool]] = []
    renamed: set[str] = set()
    for operation, own in zip(wanted, plain, strict=True):
        name = own
        if meetings[own] > 1 and any(own == other for other, *_ in named):
            name = _by_path(operation)
            if name in taken:
                name = _cut(f"{name}_{_digest(f'{operation.method} {operation.path}')}", "")
            taken.add(name)
        asked = [key for key in (operation.id, own) if key is not None and key in selection.rename]
        renamed.update(asked)
        named.append((selection.rename[asked[0]] if asked else name, operation, not asked and name != own))
    if missing := [old for old in selection.rename if old not in renamed]:
        raise SelectionError(f"there is no operation `{missing[0]}` to rename")
    final = [(selection.prefix + name, operation, meets) for name, operation, meets in named]
    counts = Counter(name for name, *_ in final)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise SelectionError(f"two tools would be called `{twice[0]}`")
    return final


def _is_wanted(operation: Operation, selection: Selection) -> bool:
    included = not selection.include or any(_fits(operation, pattern) for pattern in selection.include)
    return included and not any(_fits(operation, pattern) for pattern in selection.exclude)


def _fits(operation: Operation, pattern: str) -> bool:
    known = (operation.id, operation.path, *operation.tags)
    if any(text is not None and fnmatchcase(text, pattern) for text in known):
        return True
    method, _, path = pattern.partition(" ")
    if not path:
        return pattern == operation.method.upper()
    return fnmatchcase(operation.method, method.lower()) and fnmatchcase(operation.path, path.strip())


def _tags(operations: Iterable[Operation]) -> list[str]:
    """The first tags of operations, in their order."""
    return [operation.tags[0] for operation in operations if operation.tags]


def _tagged(operation: Operation) -> str:
    """The usual name, with the operation's first tag in front, unless it begins so."""
    name = _plain(operation)
    tag = [word.lower() for word in naming.words(operation.tags[0])] if operation.tags else []
    if not tag or [word.lower() for word in naming.words(name)][: len(tag)] == tag:
        return name
    prefix = _REFUSED.sub("_", "_".join(tag)).strip("_")
    return _cut(f"{prefix}_{name}", f"{operation.tags[0]} {name}") if prefix else name


def _plain(operation: Operation) -> str:
    if operation.id is None:
        return _by_path(operation)
    kept = _REFUSED.sub("_", operation.id.strip())
    kept = kept if kept == operation.id else kept.strip("_")
    return _cut(kept, operation.id) if kept else _by_path(operation)


def _by_path(operation: Operation) -> str:
    """The method and the words of the path: `get_users_user_id`."""
    words = [word.lower() for word in naming.words(operation.path)]
    return _cut(_REFUSED.sub("_", "_".join([operation.method, *words])).strip("_"), operation.path)


def _cut(name: str, source: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 7]}_{_digest(source or name)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
