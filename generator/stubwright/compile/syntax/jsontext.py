"""Parses JSON into values and token trees, and rejects ambiguous JSON (RFC 8259, sections 4, 6 and 8.2)."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from stubwright.compile.syntax import strictjson
from stubwright.compile.syntax.positions import (
    MAX_DEPTH,
    MAX_DIGITS,
    Lines,
    Node,
    Problem,
    find_odd_space,
    report_depth,
    report_duplicate,
)
from stubwright.diagnostics.suggestions import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stubwright.ir import Json

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_CONTAINERS = {dict, list}
CONSTANTS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
"""Numbers that Python's parser accepts but JSON does not allow."""

_SYNTAX: Final = {
    "Expecting property name enclosed in double quotes": (
        "expected a key in double quotes",
        "JSON does not allow trailing commas or single quotes",
    ),
    "Illegal trailing comma before end of object": ("unexpected comma after the last entry", "remove the comma"),
    "Illegal trailing comma before end of array": ("unexpected comma after the last item", "remove the comma"),
    "Expecting ',' delimiter": ("expected a comma, or the end of the list or object", None),
    "Expecting ':' delimiter": ("a `:` is missing between the key and its value", None),
    "Expecting value": ("expected a value", None),
    "Extra data": ("unexpected text after the JSON value", "a file contains a single JSON value"),
    "Unterminated string starting at": ("this string is not closed", 'close it with `"` on the same line'),
    "Invalid control character at": (
        "a string contains a raw line break or control character",
        "write it as an escape, such as `\\n` or `\\t`",
    ),
    "Invalid \\escape": ("unknown escape in JSON", "write `\\\\` for a backslash"),
    "Invalid \\uXXXX escape": ("`\\u` needs four hexadecimal digits", None),
}


def parse(text: str) -> tuple[Json, list[Problem]]:
    """Parse JSON. Return the value, which is None if the JSON is invalid, and the problems."""
    try:
        value = strictjson.load(text)
    except json.JSONDecodeError as error:
        return None, [_report_syntax(text, error)]
    except (ValueError, RecursionError, strictjson.DuplicateKeyError):  # `parse_tree` reports the position
        return None, parse_tree(text)[1]
    if _is_deep(value) or _SURROGATE_ESCAPE.search(text):
        problems = parse_tree(text)[1]
        return (None if problems else value), problems
    return value, []


def parse_file(text: str) -> tuple[Json, list[Problem]]:
    """Parse a `.json` file. Add a hint if the text looks like YAML."""
    value, problems = parse(text)
    if problems and problems[0].help is None and not text[: problems[0].start].strip():
        fix = "`.json` files are parsed as JSON; rename it to `.yaml` if it is YAML"
        problems = [replace(problems[0], help=fix), *problems[1:]]
    return value, problems


def parse_tree(text: str) -> tuple[Node, list[Problem]]:
    """Parse JSON into a token tree and the problems. Only excessive nesting truncates the tree."""
    problems: list[Problem] = []
    lines: Lines | None = None
    root = Node(0, 0)
    stack: list[Node] = []
    key: tuple[str, Node] | None = None
    for match in _TOKEN.finditer(text):
        word, start, end = match[0], match.start(), match.end()
        if word in ",:":
            continue
        if word in "]}":
            if stack:
                stack.pop().end = end
            continue
        node = Node(start, end, {} if word in "[{" else None, flow=True)
        parent = stack[-1] if stack else None
        in_object = parent is not None and text[parent.start] == "{"
        if node.children is None:
            problems += _check_scalar(word, start, end)
        if in_object and key is None:
            key = (_parse_string(word), node)
            continue
        if parent is None or parent.children is None:
            root = node
        elif key is None:
            parent.children[len(parent.children)] = (None, node)
        else:
            name, key_node = key
            first = parent.children.get(name)
            if first is not None and first[0] is not None:
                lines = lines or Lines(text)
                line, _ = lines.find_position(first[0].start)
                problems.append(report_duplicate(name, line, key_node))
            parent.children[name] = (key_node, node)
        key = None
        if node.children is not None:
            stack.append(node)
            if len(stack) > MAX_DEPTH:
                return root, [*problems, report_depth(start, end)]
    return root, problems


def _check_scalar(word: str, start: int, end: int) -> Iterable[Problem]:
    if word[0] == '"':
        if "\\" in word and _SURROGATE.search(_parse_string(word)):
            yield report_lone_surrogate(start, end)
    elif word in CONSTANTS:
        yield Problem("SW007", f"`{word}` is not a JSON value", start, end, "JSON has only finite numbers")
    elif _NUMBER.fullmatch(word):
        yield from check_number(word, start, end)


def check_number(word: str, start: int, end: int) -> Iterable[Problem]:
    """Check that a decimal number does not have too many digits and is within the float range."""
    if sum(char.isdigit() for char in word) > MAX_DIGITS:
        yield Problem("SW007", f"this number has more than {MAX_DIGITS} digits", start, end, "write it as a string")
    elif not word.lstrip("+-").isdigit() and math.isinf(float(word)):
        message = f"`{shorten(word)}` is too large for a number"
        yield Problem("SW007", message, start, end, "the largest is about 1.8e308; use a string")


def report_lone_surrogate(start: int, end: int) -> Problem:
    """Return a problem for a string with a lone surrogate."""
    return Problem(
        "SW010",
        "this string contains half a surrogate pair, which is not a character",
        start,
        end,
        "write both halves, such as `\\ud83d\\ude00`, or the character itself",
    )


def _parse_string(word: str) -> str:
    if word[0] == '"' and "\\" not in word and word.isprintable():  # no escapes
        return word[1:-1]
    try:
        value = json.loads(word)
    except ValueError:  # an unterminated string
        return word
    return value if isinstance(value, str) else word


def _is_deep(value: Json) -> bool:
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for here in level
            for child in (here.values() if type(here) is dict else here)
            if type(child) in _CONTAINERS
        ]
        if not level:
            return False
    return True


_TRAILING: Final = {
    "}": "Illegal trailing comma before end of object",
    "]": "Illegal trailing comma before end of array",
}


def _report_syntax(text: str, error: json.JSONDecodeError) -> Problem:
    if (odd := find_odd_space(text, error.pos)) is not None:
        return odd
    before = text[: error.pos].rstrip()
    if before.endswith(",") and (end := text[error.pos : error.pos + 1]) in _TRAILING:  # Python 3.13's message
        error = json.JSONDecodeError(_TRAILING[end], text, len(before) - 1)
    message, fix = _SYNTAX.get(error.msg, (error.msg, None))
    if text[error.pos : error.pos + 1] in ("/", "#"):
        fix = "JSON has no comments; YAML does"
    elif error.pos >= len(text.rstrip()):
        message, fix = "unexpected end of the text", "a `}`, a `]` or a quote is missing"
    return Problem("SW004", message, error.pos, error.pos + 1, fix)
