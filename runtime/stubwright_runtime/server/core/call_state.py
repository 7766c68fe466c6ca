"""The record of one call, for the audit log and telemetry: the facts known so far."""

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
"""The maximum number of argument names to keep."""

Transport: TypeAlias = Literal["http", "stdio", "memory"]
"""The transport of a request; `memory` is this process."""


@dataclass(slots=True)
class CallState:
    """One call of a tool.

    Attributes:
        began: The time at which it came, in seconds since 1970.
        transport: The transport that it came over.
        revision: The revision that the caller speaks.
        principal: The caller.
        tool: The tool, once it is known that there is one and that the caller may use it.
        arguments: The arguments from the caller.
        size: The bytes of these as JSON.
        is_valid: True if they were found valid.
        status: The status of the call, if it is known.
        reason: The reason in one word, if it did not complete.
        reference: The id, if the log says more under it.
        result: The result of the tool that the caller gets.
        cleaned: The number of texts in it that were sanitized.
        is_replay: True if an earlier call had this result.
        seconds: The duration of the call.
        trace: The trace that it belongs to.
        traceparent: The valid `traceparent` of its caller, if calls are recorded.
        client: The name and the version that the client program reports.
        name: The tool, as the caller wrote it.
        keys: The names of the arguments, the first of them and shortened.
        key_count: The number of arguments.
        result_bytes: The size of the result as JSON.
        known_id: The id, if there is one already.
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
        """The unique id of the call in the log, in the record and for the caller."""
        if self.known_id is None:
            self.known_id = secrets.token_hex(8)
        return self.known_id

    def record_parameters(self, params: Mapping[str, Any]) -> None:
        """Note the name of the tool and the names of the arguments that these parameters hold."""
        name, arguments = params.get("name"), params.get("arguments")
        if isinstance(name, str):
            self.name = name[:_NAME]
        if is_mapping(arguments):
            self.keys, self.key_count = [str(key)[:_NAME] for key in islice(arguments, _KEYS)], len(arguments)

    def record_outcome(self, outcome: Outcome) -> None:
        """Note the outcome of the call."""
        self.status, self.reason, self.reference = outcome.status, outcome.reason, outcome.reference
        self.result, self.cleaned = outcome.result, outcome.cleaned


def note(status: OutcomeStatus, reason: str) -> None:
    """Record the status of the call that is being answered, if calls are recorded."""
    request = find_request()
    if request is not None and request.record is not None:
        request.record.status, request.record.reason = status, reason


def make_reference() -> str:
    """Return the reference of a failure for the log and the caller: the id of the call that is being answered."""
    request = find_request()
    return secrets.token_hex(8) if request is None else request.call_id
