"""The state of a task as a server reports it, in either era.

JSON that is not the state of a task fails validation, which the caller of a request sees like any other response that
is not MCP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, Field

from ...values.sanitizing import clean

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The status of a task; the last three are ends."""

ENDS: Final = frozenset({"completed", "failed", "cancelled"})

_SHORTEST: Final = 0.1
_USUAL: Final = 1.0
_LONGEST: Final = 60.0
"""The minimum, default and maximum interval between two polls of a task, in seconds."""


@dataclass(frozen=True, slots=True)
class ToolTaskState:
    """The last state of a task that the server reported.

    Attributes:
        id: The task's id; `""` if the server answered immediately, without a task.
        status: The status of the task.
        message: The server's message about the status; `None` if there is none.
        ttl: Seconds from its creation for which the server keeps it; `None` if it does not say, or for ever.
        poll_interval: Seconds before the next look: the server's wish, but at least 0.1 and at most 60.
    """

    id: str
    status: Status
    message: str | None = None
    ttl: float | None = None
    poll_interval: float = _USUAL

    @property
    def ended(self) -> bool:
        """True if the task has ended, so that its state never changes again."""
        return self.status in ENDS


class WireTask(BaseModel):
    """A task on the wire: `Task` of MCP 2025-11-25, and of the extension `DetailedTask` and `CreateTaskResult`."""

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
        """Return the state for callers; `is_clean` removes control characters from its texts."""
        message = self.message
        seconds = _USUAL if self.poll_interval is None else self.poll_interval / 1000
        return ToolTaskState(
            id=self.id,
            status=self.status,
            message=clean(message) if is_clean and message is not None else message,
            ttl=None if self.ttl is None else self.ttl / 1000,
            poll_interval=min(max(seconds, _SHORTEST), _LONGEST),
        )
