"""The record of one call, for the audit log and telemetry."""

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
"""The maximum length of a name from a caller, in characters."""

_KEYS: Final = 50
"""The maximum number of recorded argument names."""

Transport: TypeAlias = Literal["http", "stdio", "memory"]
"""The transport of a request; `memory` is in-process."""


@dataclass(slots=True)
class CallState:
    """One call of a tool.

    Attributes:
        began: The start time in seconds since 1970.
        transport: The transport.
        revision: The MCP revision of the request.
        principal: The caller.
        tool: The tool, if it exists and is visible to the caller.
        arguments: The caller's arguments.
        size: The size of the arguments as JSON, in bytes.
        is_valid: True if the arguments are valid.
        status: The call's status, once known.
        reason: The reason in one word, if the call did not complete.
        reference: The reference of a log entry with details, if any.
        result: The result sent to the caller.
        cleaned: The number of sanitized strings in the result.
        is_replay: True for the stored result of an earlier call.
        seconds: The duration of the call.
        trace: The trace ID.
        traceparent: The caller's valid `traceparent`, if calls are recorded.
        client: The name and version of the client.
        name: The name of the tool in the request.
        keys: The first argument names, shortened.
        key_count: The number of arguments.
        result_bytes: The size of the result as JSON, in bytes.
        known_id: The ID, once created.
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
        """The call's unique ID in the log, in the record and for the caller."""
        if self.known_id is None:
            self.known_id = secrets.token_hex(8)
        return self.known_id

    def record_parameters(self, params: Mapping[str, Any]) -> None:
        """Record the names of the tool and of its arguments."""
        name, arguments = params.get("name"), params.get("arguments")
        if isinstance(name, str):
            self.name = name[:_NAME]
        if is_mapping(arguments):
            self.keys, self.key_count = [str(key)[:_NAME] for key in islice(arguments, _KEYS)], len(arguments)

    def record_outcome(self, outcome: Outcome) -> None:
        """Record the outcome of the call."""
        self.status, self.reason, self.reference = outcome.status, outcome.reason, outcome.reference
        self.result, self.cleaned = outcome.result, outcome.cleaned


def record_status(status: OutcomeStatus, reason: str) -> None:
    """Record the status of the current call, if calls are recorded."""
    request = find_request()
    if request is not None and request.record is not None:
        request.record.status, request.record.reason = status, reason


def make_reference() -> str:
    """Return a reference to a failure for the log and the caller: the current call's ID."""
    request = find_request()
    return secrets.token_hex(8) if request is None else request.call_id
