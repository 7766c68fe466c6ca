"""Call options, and the marker for omitted arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, final, get_args

from ...mcp.vocabulary import LogLevel
from ..transports.bounds import MAX_RESULT_BYTES

KEY_LENGTH: Final = 255
"""The maximum idempotency key length in characters."""

TIMEOUT: Final = 60.0
"""The default request timeout in seconds."""


@final
class Omit:
    """The type of `OMIT`, for annotations and for `isinstance`."""

    _only: Omit | None = None

    def __new__(cls) -> Omit:
        """Return the singleton."""
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        """Accept only `OMIT`. Agent frameworks build models from client methods' signatures."""
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> Any:
        """Leave `OMIT` out of JSON schemas."""
        from pydantic_core import PydanticOmit

        raise PydanticOmit

    def __bool__(self) -> Literal[False]:
        """Return False, because the argument was omitted."""
        return False

    def __repr__(self) -> str:
        return "OMIT"

    def __reduce__(self) -> str:
        """Make copying and unpickling return the singleton."""
        return "OMIT"


OMIT: Final = Omit()
"""Marks an argument as not sent, so that the server's default applies."""


Outcome: TypeAlias = Literal["ok", "failed", "refused", "invalid", "too_large", "timeout", "error", "cancelled"]
"""The outcome of a call.

`ok`: the call returned a result. `failed`: the tool returned `isError`. `refused`: `confirm` declined. `invalid`: the
result violates the tool's `outputSchema`, or its content is invalid. `too_large`: the result exceeds
`max_result_bytes`. `timeout`: the server timed out. `error`: any other exception, such as a protocol error or a lost
connection. `cancelled`: the caller cancelled the call.
"""

Sanitize: TypeAlias = Literal["text", "all", "none"]
"""The part of a result to sanitize: the content, also `structuredContent` and `_meta`, or nothing."""


@dataclass(frozen=True, slots=True)
class CallEvent:
    """The event that `on_call` receives at the start and end of a call.

    Attributes:
        call: The call's number in this process, the same for both of its events.
        phase: `start` before confirmation and sending, `end` after the result is checked.
        tool: The tool's wire name.
        arguments: A copy of all arguments as JSON, with `"[redacted]"` for values in the manifest's `policy.redact`.
        outcome: The call's outcome; `None` at the start.
        duration: Seconds from start to end, including `confirm`; `None` at the start.
        cleaned: The number of sanitized strings in the result; see `sanitize`.
    """

    call: int
    phase: Literal["start", "end"]
    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome | None = None
    duration: float | None = None
    cleaned: int = 0


Confirm: TypeAlias = Callable[[str, Mapping[str, Any]], bool | Awaitable[bool]]
"""Receives a tool's wire name and arguments; the call is sent only if it returns `True`."""

OnCall: TypeAlias = Callable[[CallEvent], Awaitable[None] | None]
"""Receives the events for every call. An exception from it fails the call."""

ProgressCallback: TypeAlias = "Callable[[float, float | None, str | None], Awaitable[None]]"
"""Called with a progress notification's progress, total and message."""

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]
"""Receives the amount done, the total if known, and the server's message, if any."""

OnLog: TypeAlias = Callable[[LogLevel, str | None, Any], Awaitable[None] | None]
"""Receives a log message's level, its logger's name or `None`, and its data as JSON."""


def _is_positive(number: object) -> bool:
    return isinstance(number, int) and number > 0


@dataclass(frozen=True, slots=True)
class Options:
    """The options for calls through one client.

    Raises:
        ValueError: The timeout or the size limit is not positive, `confirm_all` is set without `confirm`, or the
            idempotency key is empty or too long.
    """

    timeout: float | None = TIMEOUT
    confirm: Confirm | None = None
    on_call: OnCall | None = None
    on_progress: OnProgress | None = None
    max_result_bytes: int | None = MAX_RESULT_BYTES
    confirm_all: bool = False
    sanitize: Sanitize = "text"
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        """Validate the options."""
        if self.confirm_all and self.confirm is None:
            raise ValueError("confirm_all=True requires `confirm`")
        if self.sanitize not in get_args(Sanitize):
            raise ValueError(f"sanitize must be 'text', 'all' or 'none', not {self.sanitize!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, not {self.timeout!r}")
        if self.max_result_bytes is not None and not _is_positive(self.max_result_bytes):
            raise ValueError(f"max_result_bytes must be a positive number of bytes, not {self.max_result_bytes!r}")

        if self.idempotency_key is not None and not 0 < len(self.idempotency_key) <= KEY_LENGTH:
            raise ValueError(f"idempotency_key must have 1 to {KEY_LENGTH} characters")

    def with_changes(self, **changes: Any) -> Options:
        """Return a copy with changed options; a change to `OMIT` leaves the option unchanged."""
        return replace(self, **{name: value for name, value in changes.items() if not isinstance(value, Omit)})
