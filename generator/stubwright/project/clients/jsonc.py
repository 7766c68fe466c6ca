"""Edits JSON with comments in place: adds or removes an object member without changing other bytes.

It accepts JavaScript comments and trailing commas, like the settings files of VS Code, Cursor and Zed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from stubwright.compile.syntax import jsontext
from stubwright.compile.syntax.positions import Node, Problem

_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
# Match strings, too, so that `//` in a URL does not start a comment.
_COMMENTS: Final = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_COMMAS: Final = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_COMMA: Final = re.compile(r"\s*,")
_REST: Final = re.compile(r"[ \t]*(?:\r\n|\n|\r|\Z)")
_KINDS: Final = {"[": "a list", '"': "a text", "t": "a boolean", "f": "a boolean", "n": "null"}


class EditError(Exception):
    """JSON or TOML text cannot be edited; `problem` explains why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def with_member(text: str, path: Sequence[str], value: Any, *, comments: bool) -> str:
    """Set an object member in a text, creating missing parent objects.

    Args:
        text: A JSON object, or an empty string.
        path: The keys on the path to the member, outermost first.
        value: The member's value, for `json.dumps`.
        comments: True if the text may have comments and trailing commas.

    Raises:
        EditError: The text is not valid JSON, or a parent is not an object.
    """
    tree = _read(text, comments)
    if tree is None:
        document = _dump(_nest_value(path, value), "", "  ", _newline(text))
        above = text if text.strip() else ""
        return f"{above}{'' if not above or above.endswith(_BREAKS) else _newline(text)}{document}{_newline(text)}"
    here = tree.root
    for depth, step in enumerate(path):
        children = tree.find_members(here, path[:depth])
        child = children.get(step)
        if child is None:
            return tree.insert(here, step, _nest_value(path[depth + 1 :], value))
        here = child
    if json.loads(tree.bare[here.start : here.end]) == value:
        return text
    margin = _find_indent(text, here.start)
    return text[: here.start] + _dump(value, margin, tree.unit, _newline(text)) + text[here.end :]


def without_member(text: str, path: Sequence[str], *, comments: bool) -> str:
    """Remove a member from a text if it exists. Raises EditError like `with_member`."""
    tree = _read(text, comments)
    if tree is None:
        return text
    here = tree.root
    for depth, step in enumerate(path):
        child = tree.find_members(here, path[:depth]).get(step)
        if child is None:
            return text
        parent, here = here, child
    return tree.remove(parent, path[-1])


def read(text: str) -> Any:
    """Parse JSON with comments and trailing commas; return None if the text is empty.

    Raises:
        EditError: The text is not valid JSON.
    """
    tree = _read(text, comments=True)
    return None if tree is None else jsontext.parse(tree.bare)[0]


@dataclass(frozen=True, slots=True)
class _TokenizedText:
    """A text and its tokens.

    `plain` has spaces in place of comments, and `bare` also in place of trailing commas, so that all offsets are equal.
    """

    text: str
    plain: str
    bare: str
    root: Node

    def find_members(self, node: Node, path: Sequence[str]) -> dict[str | int, Node]:
        """Return the values of the object at `path`, keyed by name.

        Raises EditError if the value at `path` is not an object.
        """
        first = self.bare[node.start]
        if first != "{":
            what = f"`{'.'.join(path)}`" if path else "this file"
            message = f"{what} is {_KINDS.get(first, 'a number')}, not an object"
            raise EditError(Problem("SW102", message, node.start, node.end))
        return {key: child for key, (_, child) in (node.children or {}).items()}

    @property
    def unit(self) -> str:
        """The indentation of the first member."""
        key = _find_first_key(self.root)
        margin = (
            _find_indent(self.text, key.start)
            if key is not None and self._has_line_break(self.root.start, key.start)
            else ""
        )
        return margin or "  "

    def insert(self, node: Node, key: str, value: Any) -> str:
        text, newline = self.text, _newline(self.text)
        close = node.end - 1
        first = _find_first_key(node)
        if first is None:
            outer = _find_indent(text, node.start)
            margin = outer + self.unit
            kept = text[node.start + 1 : close].rstrip()
            inserted = f"{kept}{newline}{margin}{self._member(key, value, margin)}{newline}{outer}"
            return text[: node.start + 1] + inserted + text[close:]
        last = self._find_last(node)
        has_comma = _COMMA.match(self.plain, last.end) is not None
        end = last.end + len(text[last.end : close].rstrip())  # including a comment after the last member
        before, after = text[: last.end], text[last.end : end]
        if self._has_line_break(node.start, first.start) or self._has_line_break(last.end, close):
            on_own_line = self._has_line_break(node.start, first.start)
            margin = _find_indent(text, first.start) if on_own_line else _find_indent(text, node.start) + self.unit
            inserted = f"{newline}{margin}{self._member(key, value, margin)}{',' if has_comma else ''}"
        else:
            inserted = f" {json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        return f"{before}{'' if has_comma else ','}{after}{inserted}{text[end:]}"

    def remove(self, node: Node, key: str) -> str:
        children = list((node.children or {}).items())
        index = next(number for number, (name, _) in enumerate(children) if name == key)
        key_node, value = children[index][1]
        start, end = (key_node or value).start, value.end
        comma = _COMMA.match(self.plain, end)
        end = comma.end() if comma else end
        line = start - len(_before(self.text, start))
        rest = _REST.match(self.text, end)
        if not self.text[line:start].strip() and rest is not None and rest[0]:
            start, end = line, rest.end()
        elif comma:
            end += len(self.text[end:]) - len(self.text[end:].lstrip(" \t"))
        text = self.text[:start] + self.text[end:]
        above = _COMMA.match(self.plain, children[index - 1][1][1].end) if comma is None and index else None
        if above is None:
            return text
        gap = self.text[above.end() : start]
        cut = start if not gap.strip() and not self._has_line_break(above.end(), start) else above.end()
        return text[: above.end() - 1] + text[cut:]

    def _member(self, key: str, value: Any, margin: str) -> str:
        dumped = _dump(value, margin, self.unit, _newline(self.text))
        return f"{json.dumps(key, ensure_ascii=False)}: {dumped}"

    def _find_last(self, node: Node) -> Node:
        return list((node.children or {}).values())[-1][1]

    def _has_line_break(self, start: int, end: int) -> bool:
        return not {"\n", "\r"}.isdisjoint(self.text[start:end])


_BREAKS: Final = ("\n", "\r")


def _read(text: str, comments: bool) -> _TokenizedText | None:
    """Tokenize a text. Return None if the text is empty. Raises EditError."""
    plain = _COMMENTS.sub(_blank, text) if comments else text
    bare = _COMMAS.sub(_blank, plain) if comments else text
    if not bare.strip():
        return None
    _, problems = jsontext.parse(bare)
    if problems:
        raise EditError(_adapt(bare, problems[0], comments))
    root, _ = jsontext.parse_tree(bare)
    return _TokenizedText(text, plain, bare, root)


def _adapt(text: str, problem: Problem, comments: bool) -> Problem:
    """Adapt a JSON error message to a settings file."""
    if comments and text.startswith("/*", problem.start):
        return Problem(problem.code, "this comment is not closed", problem.start, problem.end, "close it with `*/`")
    if text[problem.start : problem.start + 1] in ("/", "#"):
        return replace(problem, help="the client does not accept comments" if not comments else None)
    return replace(problem, help=None) if problem.code == "SW008" else problem  # its help is for manifests


def _blank(match: re.Match[str]) -> str:
    """Replace a match, except its line breaks, with spaces. Return a string unchanged."""
    return match[0] if match[0].startswith('"') else re.sub(r"[^\r\n]", " ", match[0])


def _find_first_key(node: Node) -> Node | None:
    return next((key for key, _ in (node.children or {}).values()), None)


def _nest_value(path: Sequence[str], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value}
    return value


def _dump(value: Any, margin: str, unit: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + margin)


def _newline(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _before(text: str, offset: int) -> str:
    return text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]


def _find_indent(text: str, offset: int) -> str:
    line = _before(text, offset)
    return line[: len(line) - len(line.lstrip())]
