"""TOML, edited with tomlkit: a table of two keys put in, or taken out, and nothing else touched.

Takes text; gives text, or raises `UnfitError` with the place of what is in the way. A table that is written with
headers is edited; one inside another value is left to people. What comes out is read again and compared with what was
meant, so that no text is ever broken. It knows no file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from toolwright.compile.syntax.positions import Problem
from toolwright.project.clients.jsonc import UnfitError

if TYPE_CHECKING:
    from tomlkit.items import Table

_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_FIX: Final = "write it under a header of its own, such as `[{}.{}]`, and run the command again"


def with_table(text: str, path: tuple[str, str], value: Mapping[str, Any]) -> str:
    """The text with a table, in place of the one that is there, or at the end.

    Args:
        text: A TOML document.
        path: The table's two keys.
        value: Texts, lists of texts, and tables of texts.

    Raises:
        UnfitError: The text is not TOML, or the table stands inside another value.
    """
    before = _parse(text)
    tables = _tables(before, path[0])
    if tables.get(path[1]) == value:
        return text
    edited = _replace(text, path, value) if path[1] in tables else _append(text, path, value)
    return _checked(text, edited, {**before, path[0]: {**tables, path[1]: dict(value)}}, path)


def without_table(text: str, path: tuple[str, str]) -> str:
    """The text without a table; as it is where there is none. Raises UnfitError as `with_table` does."""
    before = _parse(text)
    tables = _tables(before, path[0])
    if path[1] not in tables:
        return text
    after = {**before, path[0]: {key: value for key, value in tables.items() if key != path[1]}}
    return _checked(text, _replace(text, path, None), after, path)


def _tables(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    tables = document.get(key)
    return tables if isinstance(tables, dict) else {}


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _PLACE.search(str(error))
        lines = text.split("\n")
        line, column = map(int, match.groups()) if match else (len(lines), len(lines[-1]) + 1)
        offset = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
        message = _PLACE.sub("", str(error)).strip()
        raise UnfitError(Problem("TW004", f"this is not TOML: {message}", offset, offset + 1)) from error


def _append(text: str, path: tuple[str, str], value: Mapping[str, Any]) -> str:
    import tomlkit

    block = tomlkit.dumps({path[0]: {path[1]: value}}).replace("\n", _newline(text))
    if not text.strip():
        return text + block
    return text + _newline(text) * (1 if text.endswith("\n") else 2) + block


def _replace(text: str, path: tuple[str, str], value: Mapping[str, Any] | None) -> str | None:
    """The text with another table or, if there is no value, without it; `None` if it stands inside another value."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import Table, Whitespace

    newline = _newline(text)
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:  # which knows an older TOML than Python does
        return None
    parents = [item for key, item in document.body if key == path[0] and isinstance(item, Table) and path[1] in item]
    if len(parents) != 1 or not isinstance(old := parents[0][path[1]], Table):
        return None
    tables = parents[0]
    comments = "".join(f"{comment}{newline}{newline}" for comment in _comments_below(old)).removesuffix(newline)
    if value is None:
        at = next(index for index, (key, _) in enumerate(tables.value.body) if key == path[1])
        tables.remove(path[1])
        tables.value.body[at] = (None, Whitespace(comments))
        if not comments:  # nor the empty line that parted the table from what is above, at the end of the file
            return re.sub(r"(^|\r?\n)(?:\r?\n)+\Z", r"\1", tomlkit.dumps(document))
    else:
        new = cast("Table", tomlkit.parse(tomlkit.dumps({path[1]: value}).replace("\n", newline))[path[1]])
        last = next((each for each in reversed([*new.values()]) if isinstance(each, Table)), new)
        last.value.body.append((None, Whitespace(newline + comments if comments else "")))
        tables[path[1]] = new
    return tomlkit.dumps(document)


def _newline(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _comments_below(table: Table) -> Iterator[str]:
    """The comments between a table's entries and the next header, also in tables inside: they belong to the header."""
    from tomlkit.items import Table

    body = table.value.body
    entries = [index for index, (key, item) in enumerate(body) if key is not None and not isinstance(item, Table)]
    text = ""
    for _, item in body[max(entries, default=-1) + 1 :]:
        if isinstance(item, Table):
            if text.strip():
                yield text.strip("\r\n")
            text = ""
            yield from _comments_below(item)
        else:
            text += item.as_string()
    if text.strip():
        yield text.strip("\r\n")


def _checked(text: str, edited: str | None, after: Mapping[str, Any], path: tuple[str, str]) -> str:
    """The edited text, if it means what it should. Raises UnfitError."""
    try:
        if edited is not None and _without_empty(tomllib.loads(edited), path[0]) == _without_empty(after, path[0]):
            return edited
    except tomllib.TOMLDecodeError:
        pass
    start = max(0, text.find(path[0]))
    message = f"`{'.'.join(path)}` cannot be edited as it is written here"
    raise UnfitError(Problem("TW102", message, start, start + len(path[0]), _FIX.format(*path)))


def _without_empty(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A document without a table that holds nothing."""
    return {name: value for name, value in document.items() if name != key or value}
