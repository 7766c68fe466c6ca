"""Finds stack traces in strings, in the formats of several languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    "Python": re.compile(r'Traceback \(most recent call last\)|^\s*File "[^"\n]+", line \d+, in ', re.MULTILINE),
    "Node.js": re.compile(
        r"^\s+at (?:async )?(?:[^\n(]+ \()?(?:file://|node:|/|[A-Za-z]:\\)[^\n]*:\d+:\d+\)?", re.MULTILINE
    ),
    "Java": re.compile(
        r"^\s+at [\w$.<>/]+\((?:[\w$]+\.(?:java|kt|scala):\d+|Native Method|Unknown Source)\)", re.MULTILINE
    ),
    "Go": re.compile(r"^goroutine \d+ \[[^\]\n]+\]:", re.MULTILINE),
    ".NET": re.compile(r"^\s+at [\w.<>`]+\([^\n]*\) in [^\n]+:line \d+", re.MULTILINE),
    "Rust": re.compile(r"thread '[^'\n]*' (?:\(\d+\) )?panicked at |^stack backtrace:$", re.MULTILINE),
    "Ruby": re.compile(r"^\s*(?:from )?/[^\n:]+\.rb:\d+:in [`']", re.MULTILINE),
}


def find_stack(value: Any) -> str | None:
    """Return the language of the first stack trace in a JSON value's strings, or None."""
    for text in _find_texts(value):
        for language, form in _FORMS.items():
            if form.search(text):
                return language
    return None


def _find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _find_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _find_texts(inner)
