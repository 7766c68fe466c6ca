"""Selects the operations that become tools, and names the tools.

A name depends only on its operation, unless two collide. The maximum length also depends on the server's name and the
prefix, since clients prepend the server's name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from stubwright import naming, targets
from stubwright.importers.document_reader import SourceError
from stubwright.importers.openapi.operations import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stubwright.importers.openapi.operations import Operation

_REFUSED = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST: Final = 64
"""The maximum name length that every API accepts."""

_SHORTEST: Final = 32
"""Names are never truncated to less than this length."""

_WORD_END: Final = re.compile(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class SelectionError(SourceError):
    """A user option does not match the document; the message explains why."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected operations and their tool names.

    Patterns are shell patterns (`*` also matches `/`) for an `operationId`, a tag, a path, or a method with a path:
    `GET /pets/*`. A method on its own is in capitals (`GET`). The keys of `rename` are `operationId`s or default names.
    `by_tag` prefixes each tool's name with its tag.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    by_tag: bool = False


def select(
    operations: Iterable[Operation], selection: Selection, server: str, tags: Sequence[str] = ()
) -> list[tuple[str, Operation, bool]]:
    """Return the selected operations with their tool names, and whether a collision changed the name.

    Args:
        operations: All operations.
        selection: The selection.
        server: The server's name.
        tags: The document's tags, in order.

    Raises:
        SelectionError: A pattern or a rename does not match any operation, or two tools would have the same name.
    """
    all_operations = list(operations)
    for pattern in (*selection.include, *selection.exclude):
        if not any(_matches(operation, pattern) for operation in all_operations):
            hint = f"; write a method in capitals: `{pattern.upper()}`" if pattern in METHODS else ""
            raise SelectionError(f"`{pattern}` does not match any `operationId`, tag, path or method{hint}")
    wanted = [operation for operation in all_operations if _is_wanted(operation, selection)]
    if selection.by_tag:
        order = {tag: index for index, tag in enumerate(dict.fromkeys([*tags, *_list_first_tags(wanted)]))}
        wanted.sort(key=lambda operation: order[operation.tags[0]] if operation.tags else len(order))
    longest = _find_longest(server, selection.prefix)
    usual_names = [
        _truncate(_name_by_tag(operation) if selection.by_tag else _name_by_id(operation), operation, longest)
        for operation in wanted
    ]
    meetings = Counter(usual_names)
    names = set(usual_names)
    named: list[tuple[str, Operation, bool]] = []
    renamed: set[str] = set()
    for operation, usual_name in zip(wanted, usual_names, strict=True):
        name = usual_name
        if meetings[usual_name] > 1 and any(usual_name == other for other, *_ in named):
            name = _truncate(_name_by_path(operation), operation, longest)
            if name in names:
                name = _add_digest(name, f"{operation.method} {operation.path}", longest)
            names.add(name)
        renames = [key for key in (operation.id, usual_name) if key is not None and key in selection.rename]
        renamed.update(renames)
        named.append((selection.rename[renames[0]] if renames else name, operation, not renames and name != usual_name))
    if missing := [old for old in selection.rename if old not in renamed]:
        raise SelectionError(f"the operation to rename, `{missing[0]}`, does not exist")
    prefixed = [(selection.prefix + name, operation, is_renamed) for name, operation, is_renamed in named]
    counts = Counter(name for name, *_ in prefixed)
    if duplicates := [name for name, count in counts.items() if count > 1]:
        raise SelectionError(f"two tools would be named `{duplicates[0]}`")
    return prefixed


def _is_wanted(operation: Operation, selection: Selection) -> bool:
    included = not selection.include or any(_matches(operation, pattern) for pattern in selection.include)
    return included and not any(_matches(operation, pattern) for pattern in selection.exclude)


def _matches(operation: Operation, pattern: str) -> bool:
    texts = (operation.id, operation.path, *operation.tags)
    # Not `fnmatch`, which ignores case on Windows.
    if any(text is not None and fnmatchcase(text, pattern) for text in texts):
        return True
    method, _, path = pattern.partition(" ")
    if not path:
        return pattern == operation.method.upper()
    return fnmatchcase(operation.method, method.lower()) and fnmatchcase(operation.path, path.strip())


def _list_first_tags(operations: Iterable[Operation]) -> list[str]:
    return [operation.tags[0] for operation in operations if operation.tags]


def _name_by_tag(operation: Operation) -> str:
    name = _name_by_id(operation)
    tag = [word.lower() for word in naming.split_words(operation.tags[0])] if operation.tags else []
    if not tag or [word.lower() for word in naming.split_words(name)][: len(tag)] == tag:
        return name
    prefix = _REFUSED.sub("_", "_".join(tag)).strip("_")
    return f"{prefix}_{name}" if prefix else name


def _name_by_id(operation: Operation) -> str:
    if operation.id is None:
        return _name_by_path(operation)
    name = _REFUSED.sub("_", operation.id.strip())
    name = name if name == operation.id else name.strip("_")
    return name or _name_by_path(operation)


def _name_by_path(operation: Operation) -> str:
    """Return a name made from the method and the words of the path, such as `get_users_user_id`."""
    words = [word.lower() for word in naming.split_words(operation.path)]
    return _REFUSED.sub("_", "_".join([operation.method, *words])).strip("_")


def _find_longest(server: str, prefix: str) -> int:
    """Return the maximum length of a name without the prefix. Clients prepend the server's name."""
    rules = [rule.value for rule in targets.TARGETS[targets.PORTABLE].rules if rule.kind == "long name"]
    fitting = [most - len(form.replace("{server}", server).replace("{tool}", "")) for form, most in rules]
    longest = min([_LONGEST, *fitting]) - len(prefix)
    return longest if longest >= _SHORTEST else max(_LONGEST - len(prefix), _SHORTEST)


def _truncate(name: str, operation: Operation, longest: int) -> str:
    """Return a name of at most `longest` characters: its first words and a digest of the whole name."""
    return name if len(name) <= longest else _add_digest(name, operation.id or operation.path, longest)


def _add_digest(name: str, source: str, longest: int) -> str:
    digest = _digest(source)
    most = longest - len(digest) - 1
    if len(name) > most:
        ends = [match.start() for match in _WORD_END.finditer(name, 0, most + 2) if match.start() <= most]
        name = name[: ends[-1] if ends and ends[-1] >= most // 2 else most]
    return f"{name}_{digest}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
