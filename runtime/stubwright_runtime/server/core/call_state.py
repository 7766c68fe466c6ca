"""The state of one call, for the log and the audit log: what is known of it so far, and its id.

Takes what the parts of the server learn while they answer; holds it for the length of the request.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...values.json import is_mapping

if TYPE_CHECKING:
    from ...package import Tool
    from .outcomes import Ending, Outcome
    from .principal import Principal

_NAME: Final = 200
"""Characters of what a caller called something."""

_KEYS: Final = 50
"""Keys of arguments, at most."""

Transport: TypeAlias = Literal["http", "stdio", "memory"]
"""What requests come over; `memory` is this process."""


@dataclass(slots=True)
class CallState:
    """One call of a tool.

    Attributes:
        began: When it came, in seconds since 1970.
        transport: What it came over.
        revision: The revision that the caller speaks.
        principal: Who asks.
        tool: The tool, once it is known that there is one and that the caller may use it.
        arguments: What the caller sent.
        size: The bytes of these as JSON.
        is_valid: Whether they were found valid, so that they are what the manifest says.
        ending: How it ended, where that is known.
        reason: Why, in one word, where it did not complete.
        reference: The id, where the log says more by it.
        result: What the caller gets of a tool that was asked.
        cleaned: How many texts of it had something that was cleaned out.
        seconds: How long it took.
        trace: The trace that it belongs to.
        client: What the client program says of itself: its name and its version.
        name: The tool, as the caller wrote it.
        keys: The names of the arguments, the first of them and shortened.
        key_count: How many there are.
        result_bytes: The size of the result as JSON.
        known_id: The id, where there is one already.
    """

    began: float
    transport: Transport
    revision: str | None
    principal: Principal | None = None
    tool: Tool | None = None
    arguments: Mapping[str, Any] | None = None
    size: int | None = None
    is_valid: bool = False
    ending: Ending | None = None
    reason: str | None = None
    reference: str | None = None
    result: Mapping[str, Any] | None = None
    cleaned: int = 0
    seconds: float = 0.0
    trace: str | None = None
    client: tuple[str, str] | None = None
    name: str | None = None
    keys: Sequence[str] = ()
    key_count: int = 0
    result_bytes: int | None = None
    known_id: str | None = None

    @property
    def id(self) -> str:
        """What the log, the record and the caller know the call by; no other call has the same."""
        if self.known_id is None:
            self.known_id = secrets.token_hex(8)
        return self.known_id

    def note_parameters(self, params: Mapping[str, Any]) -> None:
        """Note what is called with what, as far as these parameters say."""
        name, arguments = params.get("name"), params.get("arguments")
        if isinstance(name, str):
            self.name = name[:_NAME]
        if is_mapping(arguments):
            self.keys, self.key_count = [str(key)[:_NAME] for key in islice(arguments, _KEYS)], len(arguments)

    def note_outcome(self, outcome: Outcome) -> None:
        """Note how it ended."""
        self.ending, self.reason, self.reference = outcome.ending, outcome.reason, outcome.reference
        self.result, self.cleaned = outcome.result, outcome.cleaned.strings


CURRENT: Final[ContextVar[CallState | None]] = ContextVar("call_state", default=None)
"""The call that is being answered, where calls are recorded."""


def note(ending: Ending, reason: str) -> None:
    """Note how the call that is being answered ended, where calls are recorded."""
    if (current := CURRENT.get()) is not None:
        current.ending, current.reason = ending, reason


def reference() -> str:
    """Return what the log and the caller call a failure by: the id of the call, where it is recorded."""
    current = CURRENT.get()
    return secrets.token_hex(4) if current is None else current.id
