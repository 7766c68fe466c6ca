"""Redacts arguments listed in the manifest's `policy.redact`, which only handlers may see."""

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
"""The minimum length of secrets to redact, in characters. Shorter values also occur in ordinary text."""

_PIECE: Final = 8
"""The length of pieces of longer secrets, which are also redacted because text may be truncated."""

_EDGE: Final = 256
"""The number of characters at each end of a secret from which pieces are made."""

_KEPT: Final = 256
"""The number of recent secrets to redact outside calls."""

_CHARACTERS: Final = 1024 * 1024
"""The maximum total length of recent secrets in characters. The latest secret can exceed it."""

# Short words must be whole parts of a name: `keyboard`, `compass` and `author` are not secrets.
# Compiled on first use, because servers do not need it.
_TELLING_NAME: Final = (
    r"token|secret|passw|passphrase|pwd|credential|cookie|(?:^|[_.-])(?:pass|pat|sig|dsn|keys?)(?:$|[_.-])"
    r"|(?:api|access|private|signing)keys?$|auth(?!ors?(?:$|[_.-]))"
)
_INPUT: Final = re.compile(r"input_value=(?:.*(?=, input_type=)|.*)")


def redact(arguments: Mapping[str, Any], pointers: Sequence[str]) -> dict[str, Any]:
    """Return a deep copy of a call's arguments in which some values are replaced with `"[redacted]"`.

    Args:
        arguments: The arguments as JSON.
        pointers: JSON Pointers (RFC 6901) from the arguments to the values. Pointers to missing values are ignored.
    """
    paths = [split_pointer(pointer) for pointer in pointers]
    return {
        name: _redact_paths(value, [path[1:] for path in paths if path[:1] in ([], [name])])
        for name, value in arguments.items()
    }


def hide_secrets(tool: Tool, arguments: Mapping[str, Any]) -> ContextValue[Scope]:
    """During the block, redact a call's secrets and log under its package."""
    outer = SCOPE.get()
    return ContextValue(
        SCOPE, Scope(tool.package.name, [*(outer.secrets or ()), *find_secrets(tool, arguments)], outer.waits)
    )


def find_secrets(tool: Tool, arguments: Mapping[str, Any]) -> Sequence[Secret]:
    """Return the secrets among a call's arguments, and store them as the latest secrets."""
    hidden = tool.list_hidden(arguments)
    if not hidden:
        return ()
    secrets = _sort_secrets(
        {text for pointer in hidden for text in _texts(arguments, split_pointer(pointer), _serialize_definition(tool))}
    )
    _LAST.add(secrets)
    return secrets


def make_hider() -> Callable[[str], None]:
    """Return a function that adds a secret to the current call, from any context."""
    current = SCOPE.get().secrets

    def hide(text: str) -> None:
        if current is None or all(secret.text != text for secret in current):
            secrets = _sort_secrets([text])
            _LAST.add(secrets)
            if current is not None:
                current.extend(secrets)

    return hide


def scrub(text: str) -> str:
    """Redact the current call's secrets in text; outside calls, redact the latest 256 secrets.

    If the call has secrets, input that pydantic quotes is also redacted, because it can contain all arguments.
    """
    current = SCOPE.get().secrets
    if current is not None and not current:
        return text
    return _remove_secrets(
        _INPUT.sub(f"input_value={REDACTED}", text), _LAST.list_secrets() if current is None else current
    )


def mask(text: str, secrets: Sequence[str]) -> str:
    """Redact secrets in text, whether plain or escaped for JSON, Python or URLs, and pieces of longer secrets."""
    return _remove_secrets(text, _sort_secrets(secrets))


def is_secret_name(name: str) -> bool:
    """Return whether the name of a header, option or variable suggests that its value is a secret."""
    return re.search(_TELLING_NAME, name, re.IGNORECASE) is not None


def _redact_paths(value: Json, paths: list[list[str]]) -> Any:
    """Return a copy of `value` with the values at `paths` redacted.

    A string on the way to a path is also redacted, because the string might be JSON that contains the value.
    """
    if [] in paths or (paths and isinstance(value, str)):
        return REDACTED
    if isinstance(value, dict):
        return {
            key: _redact_paths(below, [path[1:] for path in paths if path[0] == key]) for key, below in value.items()
        }
    if isinstance(value, list):
        return [
            _redact_paths(below, [path[1:] for path in paths if path[0] == str(index)])
            for index, below in enumerate(value)
        ]
    return value


@cache
def _serialize_definition(tool: Tool) -> str:
    # Words that occur in the definition are not redacted.
    return json.dumps(tool.definition)


def _texts(value: Json | Mapping[str, Any], path: list[str], known: str) -> Iterator[str]:
    """Yield the strings, numbers and keys at a path as text. Omit keys that occur in the tool's definition `known`."""
    if isinstance(value, str):
        yield value
        if value[:1] in "{[" and value[1:]:
            try:
                yield from _texts(json.loads(value), path, known)
            except (RecursionError, ValueError):
                return
    elif isinstance(value, int | float) and not isinstance(value, bool) and not path:
        yield json.dumps(value)
    elif isinstance(value, dict):
        for key, below in value.items():
            if not path or path[0] == key:
                if not path and json.dumps(key) not in known:
                    yield key
                yield from _texts(below, path[1:], known)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            if not path or path[0] == str(index):
                yield from _texts(below, path[1:], known)


@dataclass(frozen=True, eq=False)
class Secret:
    """A secret, with the encodings in which it can occur in text."""

    text: str

    @cached_property
    def forms(self) -> Sequence[str]:
        """The secret's possible encodings, longest first."""
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
        """Pieces of the secret's start and end, by position in the secret; empty for a short secret."""
        edges = {self.text[:_EDGE], self.text[-_EDGE:]} if len(self.text) >= 2 * _PIECE else ()
        places = {
            edge[at : at + _PIECE]: (edge, at) for edge in edges for at in range(0, len(edge) - _PIECE + 1, _PIECE)
        }
        return {piece: place for piece, place in places.items() if len(set(piece)) > _PIECE // 2}  # not a repetition


class _RecentSecrets:
    def __init__(self) -> None:
        self._kept: deque[Secret] = deque()
        self._size = 0

    def add(self, secrets: Iterable[Secret]) -> None:
        for secret in secrets:
            self._kept.append(secret)
            self._size += len(secret.text)
        while len(self._kept) > 1 and (len(self._kept) > _KEPT or self._size > _CHARACTERS):
            self._size -= len(self._kept.popleft().text)

    def list_secrets(self) -> tuple[Secret, ...]:
        # A secret may contain a shorter secret.
        return tuple(sorted(self._kept, key=lambda secret: len(secret.text), reverse=True))


_LAST: Final = _RecentSecrets()


def _sort_secrets(texts: Iterable[str]) -> tuple[Secret, ...]:
    return tuple(Secret(text) for text in sorted(texts, key=len, reverse=True) if len(text) >= _SHORTEST)


def _remove_secrets(text: str, secrets: Iterable[Secret]) -> str:
    for secret in secrets:
        for form in secret.forms:
            text = text.replace(form, REDACTED)
        for piece, (edge, at) in secret.pieces.items():
            if piece in text:
                text = _remove_piece(text, edge, at)
    return text


def _remove_piece(text: str, edge: str, at: int) -> str:
    """Redact each occurrence in `text` of the piece of `edge` at `at`, with the matching characters around it."""
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
