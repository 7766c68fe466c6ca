"""The task state that a server reports, in all revisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, Field

from ...values.sanitizing import clean

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""A task's status; the last three are final."""

ENDS: Final = frozenset({"completed", "failed", "cancelled"})

_SHORTEST: Final = 0.1
_USUAL: Final = 1.0
_LONGEST: Final = 60.0
"""The minimum, default and maximum polling interval for a task, in seconds."""


@dataclass(frozen=True, slots=True)
class ToolTaskState:
    """The last task state that the server reported.

    Attributes:
        id: The task's ID; `""` if the server returned a result immediately, without a task.
        status: The task's status.
        message: The status message from the server, or `None`.
        ttl: The task's lifetime in seconds from its creation, or `None` if unlimited or unknown.
        poll_interval: Seconds before the next poll, as set by the server, between 0.1 and 60.
    """

    id: str
    status: Status
    message: str | None = None
    ttl: float | None = None
    poll_interval: float = _USUAL

    @property
    def ended(self) -> bool:
        """True if the state is final."""
        return self.status in ENDS


class WireTask(BaseModel):
    """A task on the wire: `Task` in MCP 2025-11-25, and `DetailedTask` and `CreateTaskResult` in the extension."""

    id: str = Field(alias="taskId", min_length=1, max_length=4096)
    status: Status
    message: str | None = Field(None, alias="statusMessage")
    ttl: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, validation_alias=AliasChoices("ttlMs", "ttl")
    )
    poll_interval: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, validation_alias=AliasChoices("pollIntervalMs", "pollInterval")
    )
    input_requests: dict[str, Any] | None = Field(None, alias="inputRequests")
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    result_type: str | None = Field(None, alias="resultType")

    def make_state(self, *, is_clean: bool) -> ToolTaskState:
        """Convert to the state that callers get; with `is_clean`, sanitize the message."""
        message = self.message
        seconds = _USUAL if self.poll_interval is None else self.poll_interval / 1000
        return ToolTaskState(
            id=self.id,
            status=self.status,
            message=clean(message) if is_clean and message is not None else message,
            ttl=None if self.ttl is None else self.ttl / 1000,
            poll_interval=min(max(seconds, _SHORTEST), _LONGEST),
        )
