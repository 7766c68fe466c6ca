"""The options of a call, and the marker for omitted arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, final, get_args

from ...mcp.vocabulary import LogLevel
from ..transports.bounds import MAX_RESULT_BYTES

KEY_LENGTH: Final = 255
"""The maximum length of an idempotency key, in characters."""

TIMEOUT: Final = 60.0
"""The default timeout of a request, in seconds."""


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
        """Accept `OMIT` only. Agent frameworks make models of the signatures of client methods."""
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> Any:
        """Omit `OMIT` from JSON schemas."""
        from pydantic_core import PydanticOmit

        raise PydanticOmit

    def __bool__(self) -> Literal[False]:
        """Return False: the argument was not given."""
        return False

    def __repr__(self) -> str:
        """Return the name of the constant."""
        return "OMIT"

    def __reduce__(self) -> str:
        """Make copies and pickles the same instance."""
        return "OMIT"


OMIT: Final = Omit()
"""An argument that is not sent, so that the server's default applies."""


Outcome: TypeAlias = Literal["ok", "failed", "refused", "invalid", "too_large", "timeout", "error", "cancelled"]
"""The outcome of a call.

`ok`: with a result. `failed`: the tool answered with `isError`. `refused`: `confirm` declined. `invalid`: the result
breaks the tool's `outputSchema`, or its content is broken. `too_large`: it has more bytes than `max_result_bytes`.
`timeout`: no answer in time. `error`: any other exception, such as a protocol error or a lost connection. `cancelled`:
the caller gave up.
"""

Sanitize: TypeAlias = Literal["text", "all", "none"]
"""The strings of a result that are sanitized: in its content, also in its `structuredContent`, or none."""


@dataclass(frozen=True, slots=True)
class CallEvent:
    """The event that `on_call` receives at the start and the end of a call.

    Attributes:
        call: The call's number in this process; its two events have the same.
        phase: `start` before confirmation and sending, `end` after the result was checked.
        tool: The tool's name on the wire.
        arguments: All arguments as JSON, a copy, with `"[redacted]"` for values in the manifest's `policy.redact`.
        outcome: The outcome of the call; `None` at the start.
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
"""Receives a tool's wire name and the arguments; the call is sent only if it returns `True`."""

OnCall: TypeAlias = Callable[[CallEvent], Awaitable[None] | None]
"""Receives the events of every call. The call raises its exceptions."""

ProgressCallback: TypeAlias = "Callable[[float, float | None, str | None], Awaitable[None]]"
"""Called with the progress, the total and the message of a progress notification."""

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]
"""Receives the amount done, the total if it is known, and a message."""

OnLog: TypeAlias = Callable[[LogLevel, str | None, Any], Awaitable[None] | None]
"""Receives the level of a log message, its logger's name or `None`, and its data as JSON."""


def _is_positive(number: object) -> bool:
    return isinstance(number, int) and number > 0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the calls through one client.

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
            raise ValueError(f"sanitize is 'text', 'all' or 'none', not {self.sanitize!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, not {self.timeout!r}")
        if self.max_result_bytes is not None and not _is_positive(self.max_result_bytes):
            raise ValueError(f"max_result_bytes must be a positive number of bytes, not {self.max_result_bytes!r}")

        if self.idempotency_key is not None and not 0 < len(self.idempotency_key) <= KEY_LENGTH:
            raise ValueError(f"idempotency_key must have 1 to {KEY_LENGTH} characters")

    def with_changes(self, **changes: Any) -> Options:
        """Return options with the changes that are not `OMIT`."""
        return replace(self, **{name: value for name, value in changes.items() if not isinstance(value, Omit)})
