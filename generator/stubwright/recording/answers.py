"""Finds responses in a recording and explains missing ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stubwright.recording import redaction
from stubwright.recording.conversations import CALLS, make_key, select_params

if TYPE_CHECKING:
    from stubwright.recording.conversations import Answer, Call

_SHOWN: Final = 3
"""The maximum number of differences or names listed in a message."""

_LONGEST: Final = 80
"""The maximum length of a value in a message."""

_MISSING: Final = object()


class Answers:
    """A recording's responses, with the current position for each call."""

    def __init__(self, path: str, calls: Sequence[Call]) -> None:
        """Index the calls; `path` appears in messages."""
        self._path = path
        self._calls = calls
        self._by_key = {make_key(call.method, call.params): call for call in calls}
        self._given: dict[int, int] = {}

    def find(self, method: str, params: Mapping[str, Any]) -> Answer | None:
        """Return the next response to a call or repeat the last one; None if the call was not recorded."""
        sent = select_params(params)
        call = self._by_key.get(make_key(method, sent)) or next(
            (each for each in self._calls if each.method == method and redaction.matches(each.params, sent)), None
        )
        if call is None:
            return None
        number = self._given.get(call.line, 0)
        self._given[call.line] = number + 1
        return call.answers[min(number, len(call.answers) - 1)]

    def find_after_questions(self, method: str, params: Mapping[str, Any]) -> Answer | None:
        """Return the response after a call's questions, for a client that does not support questions, or None."""
        sent = select_params(params)
        for call in self._calls:
            plain = {key: value for key, value in call.params.items() if key != "inputResponses"}
            if call.method == method and "inputResponses" in call.params and redaction.matches(plain, sent):
                for answer in call.answers:
                    if not answer.asks:
                        return answer
        return None

    def explain(self, method: str, params: Mapping[str, Any]) -> str:
        """Explain why a call has no response, with the nearest recorded call and how it differs."""
        sent = select_params(params)
        kind = CALLS[method][1]
        name = _show(sent.get(kind))
        calls = [call for call in self._calls if call.method == method]
        same = [call for call in calls if call.params.get(kind) == sent.get(kind)]
        if not same:
            names = list(dict.fromkeys(_show(call.params.get(kind)) for call in calls))
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            others = f"it has {', '.join(names[:_SHOWN])}{more}" if names else "it has no calls"
            return f"{self._path} has no {method} for {name}; {others}"
        nearest = min(same, key=lambda call: self._distance(call, sent))
        differences = list(_compare(nearest.params, sent))
        more = f", and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        return (
            f"{self._path} has no {method} for {name} with these arguments; the closest call is on line "
            f"{nearest.line}, where {', '.join(differences[:_SHOWN])}{more}"
        )

    def _distance(self, call: Call, sent: Mapping[str, Any]) -> tuple[int, int]:
        recorded, leaves = dict(_list_leaves(call.params)), dict(_list_leaves(sent))
        equal = sum(_is_alike(value, leaves.get(way, _MISSING)) for way, value in recorded.items())
        return -equal, len(recorded.keys() | leaves.keys())


def _compare(recorded: Mapping[str, Any], sent: Mapping[str, Any]) -> Iterator[str]:
    before, now = dict(_list_leaves(recorded)), dict(_list_leaves(sent))
    for way in dict.fromkeys([*before, *now]):
        old, new = before.get(way, _MISSING), now.get(way, _MISSING)
        if not _is_alike(old, new):
            shown_old = "missing" if old is _MISSING else _show(old)
            shown_new = "missing" if new is _MISSING else _show(new)
            yield f"`{'.'.join(_shorten(way))}` was {shown_old} and is now {shown_new}"


def _shorten(way: tuple[str, ...]) -> Sequence[str]:
    return way[1:] if way[:1] == ("arguments",) and len(way) > 1 else way


def _is_alike(recorded: Any, sent: Any) -> bool:
    if recorded is _MISSING or sent is _MISSING:
        return recorded is sent
    return redaction.matches(recorded, sent)


def _list_leaves(value: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value, except non-empty objects and lists, with its path."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    if not items or (isinstance(value, list) and not value):
        yield way, value
        return
    for key, item in items:
        yield from _list_leaves(item, (*way, str(key)))


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
