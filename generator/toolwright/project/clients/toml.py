"""TOML, edited where it stands: a table of two keys put in, or taken out, and all else byte for byte.

Takes text; gives text, or raises `UnfitError` with the place of what is in the way. A table that is written with
headers is edited; one inside another value is left to people. What comes out is read again and compared with what was
meant, so that no text is ever broken. It knows no file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolwright.compile.syntax.positions import Problem
from toolwright.project.clients.jsonc import UnfitError

_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")|'
    r"'''.*?'''(?!')|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|"
    r"\#[^\n]*|[\[\]{}\n]|[^\s\[\]{}\"'\#]+",
    re.DOTALL,
)
_KEY: Final = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
_HEADER: Final = re.compile(rf"\[[ \t]*{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*[ \t]*\]")
_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
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
    before = _parsed(text)
    if before.get(path[0], {}).get(path[1]) == value:
        return text
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    block = newline.join([*_lines(path, value), ""])
    sections = _sections(text, path)
    if sections:
        made = _cut(text, sections[1:])
        made = made[: sections[0].start] + block + made[sections[0].end :]
    else:
        made = text + ("" if not text or text.endswith("\n") else newline) + (newline if text.strip() else "") + block
    after = {**before, path[0]: {**before.get(path[0], {}), path[1]: dict(value)}}
    return _checked(text, made, after, path)


def without_table(text: str, path: tuple[str, str]) -> str:
    """The text without a table; as it is where there is none. Raises UnfitError as `with_table` does."""
    before = _parsed(text)
    if path[1] not in before.get(path[0], {}):
        return text
    after = {**before, path[0]: {key: value for key, value in before[path[0]].items() if key != path[1]}}
    return _checked(text, _cut(text, _sections(text, path)), after, path)


@dataclass(frozen=True, slots=True)
class _Section:
    """A header and what stands under it, as offsets; comments before the next header belong to that."""

    path: tuple[str, ...]
    start: int
    end: int


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        lines = text.split("\n")
        line, column = map(int, found.groups()) if found else (len(lines), len(lines[-1]) + 1)
        offset = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
        message = _PLACE.sub("", str(error)).strip()
        raise UnfitError(Problem("TW004", f"this is not TOML: {message}", offset, offset + 1)) from error


def _sections(text: str, path: tuple[str, str]) -> list[_Section]:
    """The sections of a table and of those in it."""
    found: list[_Section] = []
    depth, at_start = 0, True
    here: tuple[tuple[str, ...], int] | None = None
    content = position = 0
    while (token := _TOKEN.search(text, position)) is not None:
        word, position = token[0], token.end()
        header = _HEADER.match(text, token.start()) if word == "[" and at_start and not depth else None
        if word == "\n":
            at_start = True
            continue
        if word.startswith("#"):
            continue
        if word == "[" and at_start and not depth:
            if here is not None:
                found.append(_Section(*here, content))
            here = None if header is None else (_path(header[0]), token.start())
            position = text.index("]", position) if header is None else header.end()
        elif word in "[{":
            depth += 1
        elif word in "]}":
            depth -= depth > 0
        at_start = False
        content = _line_end(text, position)
    if here is not None:
        found.append(_Section(*here, content))
    return [section for section in found if section.path[:2] == path]


def _path(header: str) -> tuple[str, ...]:
    """The keys of a header."""
    value, steps = tomllib.loads(header), list[str]()
    while value:
        steps += value
        value = value[steps[-1]]
    return tuple(steps)


def _line_end(text: str, offset: int) -> int:
    """The offset behind the line of another."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _cut(text: str, sections: Sequence[_Section]) -> str:
    for section in reversed(sections):
        above, below = text[: section.start], text[section.end :]
        if above.endswith(("\n\n", "\n\r\n")) and not below.strip("\r\n"):
            above = above.removesuffix("\n").removesuffix("\r")  # the empty line that parted it from what is above
        text = above + below
    return text


def _checked(text: str, made: str, after: Mapping[str, Any], path: tuple[str, str]) -> str:
    """The edited text, if it means what it should. Raises UnfitError."""
    try:
        is_right = _without_empty(tomllib.loads(made), path[0]) == _without_empty(after, path[0])
    except tomllib.TOMLDecodeError:
        is_right = False
    if is_right:
        return made
    start = max(0, text.find(path[0]))
    message = f"`{'.'.join(path)}` cannot be edited as it is written here"
    raise UnfitError(Problem("TW102", message, start, start + len(path[0]), _FIX.format(*path)))


def _without_empty(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A document without a table that holds nothing."""
    return {name: value for name, value in document.items() if name != key or value}


def _lines(path: Sequence[str], value: Mapping[str, Any]) -> list[str]:
    """A table and those in it, line by line."""
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_value(one)}" for key, one in value.items() if not isinstance(one, Mapping)]
    for key, one in value.items():
        if isinstance(one, Mapping):
            lines += ["", *_lines([*path, key], one)]
    return lines


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _value(text)


def _value(value: str | Sequence[str]) -> str:
    if isinstance(value, str):  # a string of JSON is one of TOML, but for DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_value, value))}]"
