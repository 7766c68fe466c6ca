"""Stores the events of a `dev` run for pages that are open now or opened later."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind: TypeAlias = Literal["log", "more", "print", "call", "saved", "compared", "broken", "ended"]
"""The kinds of events: a log record, a continuation line of a record, a printed line, a completed call, a served save,
its changes, a save that is not served, and an unexpected server exit."""

_KEPT: Final = 1000
"""The maximum number of earlier events that a new page receives."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event, numbered from 1."""

    number: int
    kind: Kind
    details: Mapping[str, Any]


class Journal:
    """The events of a run."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._last = 0
        self._is_closed = False
        self._changed = threading.Condition()

    @property
    def last(self) -> int:
        """The number of the last event; 0 before the first."""
        with self._changed:
            return self._last

    def add(self, kind: Kind, **details: Any) -> None:
        """Record an event; `details` must be JSON."""
        with self._changed:
            self._last += 1
            self._events.append(Event(self._last, kind, details))
            self._changed.notify_all()

    def wait_after(self, number: int, seconds: float) -> Sequence[Event] | None:
        """Wait for events after `number` and return them; return an empty list on timeout, None after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._last > number or self._is_closed, seconds)
            if self._is_closed:
                return None
            return [event for event in self._events if event.number > number]

    def close(self) -> None:
        """Wake all waiting threads. No events can be added afterwards."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
