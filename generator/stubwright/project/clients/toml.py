"""Edits TOML in place: adds or removes a table two keys deep, without changing other bytes.

Only tables with headers are edited, not tables inside other values. The result is parsed again and compared with the
intended document.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from stubwright.compile.syntax.positions import Problem
from stubwright.project.clients.jsonc import EditError

if TYPE_CHECKING:
    from tomlkit.container import Container
    from tomlkit.items import Item, Key, Table

_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_FIX: Final = "write it under its own header, such as `[{}.{}]`, and run the command again"
_TOGETHER: Final = "put the headers that start with `{}` next to each other, and run the command again"


def with_table(text: str, path: tuple[str, str], value: Mapping[str, Any]) -> str:
    """Replace a table in a text or append it.

    Args:
        text: A TOML document.
        path: The table's two keys.
        value: Its values: strings, lists of strings, and tables of strings.

    Raises:
        EditError: The text is not valid TOML, or the table is inside another value.
    """
    import tomlkit

    before = read(text)
    tables = _tables(before, path[0])
    if tables.get(path[1]) == value:
        return text
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    block = tomlkit.dumps({path[0]: {path[1]: value}}).replace("\n", newline)
    if path[1] in tables:
        edited = _replace_table(text, path, block)
    else:
        gap = ("" if not text or text.endswith("\n") else newline) + (newline if text.strip() else "")
        edited = text + gap + block
    return _check_edit(text, edited, {**before, path[0]: {**tables, path[1]: dict(value)}}, path)


def without_table(text: str, path: tuple[str, str]) -> str:
    """Remove a table from a text if it exists. Raises EditError like `with_table`."""
    before = read(text)
    tables = _tables(before, path[0])
    if path[1] not in tables:
        return text
    edited = _replace_table(text, path, "")
    if text.startswith(edited.rstrip("\r\n")) and edited.endswith(("\n\n", "\n\r\n")):
        edited = edited.removesuffix("\n").removesuffix("\r")  # the empty line before the removed table
    after = {**before, path[0]: {key: value for key, value in tables.items() if key != path[1]}}
    return _check_edit(text, edited, after, path)


def read(text: str) -> dict[str, Any]:
    """Parse a text. Raises EditError if the text is not valid TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        lines = text.split("\n")
        line, column = map(int, place.groups()) if place else (len(lines), len(lines[-1]) + 1)
        offset = sum(len(above) + 1 for above in lines[: line - 1]) + column - 1
        message = _PLACE.sub("", str(error)).strip()
        raise EditError(Problem("SW004", f"this is not valid TOML: {message}", offset, offset + 1)) from error


def _tables(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    tables = document.get(key)
    return tables if isinstance(tables, dict) else {}


def _replace_table(text: str, path: tuple[str, str], block: str) -> str:
    """Replace or remove the lines of a table. Return the text unchanged if the table has no header."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import Whitespace

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise _make_error(text, path) from error
    if document.as_string() != text:  # tomlkit moves arrays of tables that are between tables with the same parent
        raise _make_error(text, path, _TOGETHER)
    for parent in _find_tables(document, path[0]):
        for table in _find_tables(parent.value, path[1]):
            rows = parent.value.body
            index = next(index for index, (_, item) in enumerate(rows) if item is table)
            lines = block + "".join(item.as_string() for item in _trailing(table))
            rows[index] = None, Whitespace(lines)  # printed verbatim
            block = ""  # a table can have several headers
    return document.as_string()


def _find_tables(container: Container, name: str) -> list[Table]:
    return [item for key, item in container.body if key == name and _has_header(item, key)]


def _has_header(item: Item, key: Key | None) -> TypeGuard[Table]:
    from tomlkit.items import Table

    return isinstance(item, Table) and key is not None and not key.is_dotted()


def _trailing(table: Table) -> list[Item]:
    """Return the comments and empty lines after a table's values, including nested values.

    These lines belong to the next header, except for empty lines without comments before a nested table's header.
    """
    from tomlkit.items import Comment

    trailing: list[Item] = []
    gap: list[Item] = []
    for key, item in table.value.body:
        if key is None:
            gap.append(item)
        elif _has_header(item, key):
            trailing += gap if any(isinstance(above, Comment) for above in gap) else []
            gap = _trailing(item)
        else:
            gap = []
    return trailing + gap


def _check_edit(text: str, edited: str, after: Mapping[str, Any], path: tuple[str, str]) -> str:
    """Return the edited text. Raises EditError if the text does not have the intended value."""
    try:
        is_right = _drop_empty(tomllib.loads(edited), path[0]) == _drop_empty(after, path[0])
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise _make_error(text, path)
    return edited


def _make_error(text: str, path: tuple[str, str], fix: str = _FIX) -> EditError:
    start = max(0, text.find(path[0]))
    message = f"`{'.'.join(path)}` cannot be edited in this form"
    return EditError(Problem("SW102", message, start, start + len(path[0]), fix.format(*path)))


def _drop_empty(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key or value}
