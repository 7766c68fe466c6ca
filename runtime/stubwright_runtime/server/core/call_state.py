"""The state of one call, for the audit log and telemetry."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...values.json import is_mapping
from .request import find_request

if TYPE_CHECKING:
    from ...package import Tool
    from .outcomes import Outcome, OutcomeStatus
    from .principal import Principal

_NAME: Final = 200
"""The maximum recorded length of a name that a caller sent, in characters."""

_KEYS: Final = 50
"""The maximum number of argument names to record."""

Transport: TypeAlias = Literal["http", "stdio", "memory"]
"""The transport of a request; `memory` is in-process."""


@dataclass(slots=True)
class CallState:
    """The state of one tool call, for its audit record and telemetry.

    Attributes:
        began: The start time in seconds since the epoch.
        transport: How the request arrived.
        revision: The MCP revision of the request.
        principal: The caller.
        tool: The tool, if it exists and is visible to the caller.
        arguments: The arguments that the caller sent.
        size: The size of the arguments as JSON, in bytes.
        is_valid: True once the arguments have passed validation.
        status: How the call ended; `None` while it runs.
        reason: One word for why the call did not complete, otherwise `None`.
        reference: The ID of a log line with details, if any.
        result: The result sent to the caller.
        cleaned: The number of strings in the result that sanitizing changed.
        is_replay: True if the result is the stored result of an earlier call.
        seconds: The duration of the call.
        trace: The OpenTelemetry trace ID.
        traceparent: The caller's `traceparent`, if it is valid and calls are recorded.
        client: The client's name and version.
        name: The tool name that the caller sent.
        keys: The names of the first 50 arguments, shortened.
        key_count: The number of arguments.
        result_bytes: The size of the result as JSON, in bytes.
        known_id: The value of `id`; `None` until `id` is read.
    """

    began: float
    transport: Transport
    revision: str | None
    principal: Principal | None = None
    tool: Tool | None = None
    arguments: Mapping[str, Any] | None = None
    size: int | None = None
    is_valid: bool = False
    status: OutcomeStatus | None = None
    reason: str | None = None
    reference: str | None = None
    result: Mapping[str, Any] | None = None
    cleaned: int = 0
    is_replay: bool = False
    seconds: float = 0.0
    trace: str | None = None
    traceparent: str | None = None
    client: tuple[str, str] | None = None
    name: str | None = None
    keys: Sequence[str] = ()
    key_count: int = 0
    result_bytes: int | None = None
    known_id: str | None = None

    @property
    def id(self) -> str:
        """The call's unique ID, which the log, the audit record and the caller's error message contain."""
        if self.known_id is None:
            self.known_id = secrets.token_hex(8)
        return self.known_id

    def record_parameters(self, params: Mapping[str, Any]) -> None:
        """Record the tool name and the argument names of a `tools/call` request."""
        name, arguments = params.get("name"), params.get("arguments")
        if isinstance(name, str):
            self.name = name[:_NAME]
        if is_mapping(arguments):
            self.keys, self.key_count = [str(key)[:_NAME] for key in islice(arguments, _KEYS)], len(arguments)

    def record_outcome(self, outcome: Outcome) -> None:
        """Record the call's outcome."""
        self.status, self.reason, self.reference = outcome.status, outcome.reason, outcome.reference
        self.result, self.cleaned = outcome.result, outcome.cleaned


def record_status(status: OutcomeStatus, reason: str) -> None:
    """Record the current call's status, if calls are recorded."""
    request = find_request()
    if request is not None and request.record is not None:
        request.record.status, request.record.reason = status, reason


def make_reference() -> str:
    """Return the ID that links a failure's log line to the caller's error message: the current call's ID."""
    request = find_request()
    return secrets.token_hex(8) if request is None else request.call_id
