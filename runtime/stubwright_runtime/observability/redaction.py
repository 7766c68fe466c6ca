"""Redaction of the arguments that only the handler may see: those named by the manifest's `policy.redact`.

What is remembered of recent calls is bounded.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

from ..values.contexts import ContextValue
from ..values.json import Json
from ..values.text import split_pointer
from .scope import SCOPE, Scope

if TYPE_CHECKING:
    from ..package import Tool

REDACTED: Final = "[redacted]"

_SHORTEST: Final = 4
"""Characters; shorter values occur in any text, and are not searched for."""

_PIECE: Final = 8
"""Characters; pieces of a longer secret are searched for, since many texts show only part of a value."""

_EDGE: Final = 256
"""Characters at each end of a secret that are searched for in pieces: a truncated value shows one end."""

_KEPT: Final = 256
"""The number of recent secrets that are searched for when the current call is not known."""

_CHARACTERS: Final = 1024 * 1024
"""Their total length; the latest is retained however long it is."""

# Short words count only as whole parts of a name, since `keyboard`, `compass` and `author` are not secrets.
# It is not compiled here: servers load this module, and ask for no names.
_TELLING_NAME: Final = (
    r"token|secret|passw|passphrase|pwd|credential|cookie|(?:^|[_.-])(?:pass|pat|sig|dsn|keys?)(?:$|[_.-])"
    r"|(?:api|access|private|signing)keys?$|auth(?!ors?(?:$|[_.-]))"
)
_INPUT: Final = re.compile(r"input_value=(?:.*(?=, input_type=)|.*)")


def redact(arguments: Mapping[str, Any], pointers: Sequence[str]) -> dict[str, Any]:
    """Copy JSON arguments deeply, with `"[redacted]"` in place of some values.

    Args:
        arguments: The arguments as JSON.
        pointers: JSON Pointers (RFC 6901) to the values, from the root; dangling pointers are ignored.
    """
    ways = [split_pointer(pointer) for pointer in pointers]
    return {
        name: _without(value, [way[1:] for way in ways if way[:1] in ([], [name])]) for name, value in arguments.items()
    }


def hide_secrets(tool: Tool, arguments: Mapping[str, Any]) -> ContextValue[Scope]:
    """Hide the secrets of a call for the length of the block, also in what starts in it; the log is the package's."""
    outer = SCOPE.get()
    return ContextValue(
        SCOPE, Scope(tool.package.name, [*(outer.secrets or ()), *find_secrets(tool, arguments)], outer.waits)
    )


def find_secrets(tool: Tool, arguments: Mapping[str, Any]) -> Sequence[Secret]:
    """Return the secrets among the arguments of a call, which are remembered as the latest."""
    hidden = tool.list_hidden(arguments)
    if not hidden:
        return ()
    secrets = _longest_first(
        {text for pointer in hidden for text in _texts(arguments, split_pointer(pointer), _words(tool))}
    )
    _LAST.add(secrets)
    return secrets


def make_hider() -> Callable[[str], None]:
    """Return a function that marks a text as a secret of the current call, in any context."""
    current = SCOPE.get().secrets

    def hide(text: str) -> None:
        if current is None or all(secret.text != text for secret in current):
            secrets = _longest_first([text])
            _LAST.add(secrets)
            if current is not None:
                current.extend(secrets)

    return hide


def scrub(text: str) -> str:
    """Remove the secrets of the current call from a text; outside of calls, the latest 256 secrets.

    If there are secrets, or the call is not known, the input that pydantic quotes is removed, too: it may be all
    arguments.
    """
    current = SCOPE.get().secrets
    if current is not None and not current:
        return text
    return _without_all(
        _INPUT.sub(f"input_value={REDACTED}", text), _LAST.list_secrets() if current is None else current
    )


def mask(text: str, secrets: Sequence[str]) -> str:
    """Remove secrets from a text: plain, as written in JSON, Python or a URL, and pieces of the longer ones."""
    return _without_all(text, _longest_first(secrets))


def is_secret_name(name: str) -> bool:
    """Return True if the value of a header, an option or a variable of this name is likely a secret."""
    return re.search(_TELLING_NAME, name, re.IGNORECASE) is not None


def _without(value: Json, ways: list[list[str]]) -> Any:
    """Copy `value` without the values at `ways`; an empty way is the value itself. A string on the way may be JSON with
    the secret, and is removed completely.
    """
    if [] in ways or (ways and isinstance(value, str)):
        return REDACTED
    if isinstance(value, dict):
        return {key: _without(below, [way[1:] for way in ways if way[0] == key]) for key, below in value.items()}
    if isinstance(value, list):
        return [_without(below, [way[1:] for way in ways if way[0] == str(index)]) for index, below in enumerate(value)]
    return value


@cache
def _words(tool: Tool) -> str:
    """Return the text of a tool's definition, which is not secret."""
    return json.dumps(tool.definition)


def _texts(value: Json | Mapping[str, Any], way: list[str], known: str) -> Iterator[str]:
    """Yield the texts at a way: strings, numbers, and keys that are not in `known`, the definition."""
    if isinstance(value, str):
        yield value
        if value[:1] in "{[" and value[1:]:
            try:
                yield from _texts(json.loads(value), way, known)
            except (RecursionError, ValueError):
                return
    elif isinstance(value, int | float) and not isinstance(value, bool) and not way:
        yield json.dumps(value)
    elif isinstance(value, dict):
        for key, below in value.items():
            if not way or way[0] == key:
                if not way and json.dumps(key) not in known:
                    yield key
                yield from _texts(below, way[1:], known)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            if not way or way[0] == str(index):
                yield from _texts(below, way[1:], known)


@dataclass(frozen=True, eq=False)
class Secret:
    """A secret text, with the forms that are searched for, which are computed when first needed."""

    text: str

    @cached_property
    def forms(self) -> Sequence[str]:
        """The forms in which it may be written, the longest first."""
        written = {
            self.text,
            repr(self.text)[1:-1],
            json.dumps(self.text)[1:-1],
            json.dumps(self.text, ensure_ascii=False)[1:-1],
            quote(self.text, safe="", errors="replace"),
            quote(self.text, errors="replace"),
            quote_plus(self.text, errors="replace"),
        }
        return sorted({*written, *(repr(form)[1:-1] for form in written)}, key=len, reverse=True)

    @cached_property
    def pieces(self) -> Mapping[str, tuple[str, int]]:
        """Pieces of its start and its end, with their positions there; none for a short text."""
        edges = {self.text[:_EDGE], self.text[-_EDGE:]} if len(self.text) >= 2 * _PIECE else ()
        places = {
            edge[at : at + _PIECE]: (edge, at) for edge in edges for at in range(0, len(edge) - _PIECE + 1, _PIECE)
        }
        return {piece: place for piece, place in places.items() if len(set(piece)) > _PIECE // 2}  # not a row of spaces


class _RecentSecrets:
    """The latest secrets, up to the bounds."""

    def __init__(self) -> None:
        self._kept: deque[Secret] = deque()
        self._size = 0

    def add(self, secrets: Iterable[Secret]) -> None:
        """Add secrets, and forget the oldest beyond the bounds."""
        for secret in secrets:
            self._kept.append(secret)
            self._size += len(secret.text)
        while len(self._kept) > 1 and (len(self._kept) > _KEPT or self._size > _CHARACTERS):
            self._size -= len(self._kept.popleft().text)

    def list_secrets(self) -> tuple[Secret, ...]:
        """Return the secrets, the longest first: one may be the start of another."""
        return tuple(sorted(self._kept, key=lambda secret: len(secret.text), reverse=True))


_LAST: Final = _RecentSecrets()


def _longest_first(texts: Iterable[str]) -> tuple[Secret, ...]:
    return tuple(Secret(text) for text in sorted(texts, key=len, reverse=True) if len(text) >= _SHORTEST)


def _without_all(text: str, secrets: Iterable[Secret]) -> str:
    for secret in secrets:
        for form in secret.forms:
            text = text.replace(form, REDACTED)
        for piece, (edge, at) in secret.pieces.items():
            if piece in text:
                text = _without_piece(text, edge, at)
    return text


def _without_piece(text: str, edge: str, at: int) -> str:
    """Remove the piece of `edge` at position `at` from a text, with what surrounds it in `edge`."""
    parts: list[str] = []
    done = 0
    while (start := text.find(edge[at : at + _PIECE], done)) >= 0:
        end, before, after = start + _PIECE, at, at + _PIECE
        while start > done and before and text[start - 1] == edge[before - 1]:
            start, before = start - 1, before - 1
        while end < len(text) and after < len(edge) and text[end] == edge[after]:
            end, after = end + 1, after + 1
        parts += [text[done:start], REDACTED]
        done = end
    return "".join([*parts, text[done:]])
