"""Task records and their permitted changes.

MCP 2025-11-25 (basic/utilities/tasks, "Task Status Lifecycle") and the 2026-07-28 extension define the statuses and
their transitions.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from ..server.core.call_state import Transport
from ..server.core.principal import Principal

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]

OVER: Final[frozenset[Status]] = frozenset({"completed", "failed", "cancelled"})
"""The final statuses."""

_NEXT: Final[Mapping[Status, frozenset[Status]]] = {
    "working": frozenset({"working", "input_required", *OVER}),
    "input_required": frozenset({"working", "input_required", *OVER}),
}
"""The permitted next statuses. A status can repeat with another message or fewer questions."""


@dataclass(frozen=True, slots=True)
class Question:
    """A task's pending question.

    Attributes:
        name: The handler's name for the question.
        request: The request to the client: `method` and `params`.
    """

    name: str
    request: Mapping[str, Any]


def make_id() -> str:
    """Return a new task ID with 192 random bits, because without tokens the ID alone grants access.

    The ID is hexadecimal, because `secrets.token_urlsafe` can return an ID that starts with `-`, which argparse would
    treat as an option.
    """
    return secrets.token_hex(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task's record.

    Attributes:
        id: The ID that clients use.
        owner: The principal, with the session if the principal is anonymous (see `find_owner`).
        tool: The tool's wire name.
        arguments: The validated arguments, including bound ones.
        revision: The protocol revision of the call.
        transport: The transport of the call.
        call_id: The call's ID in the log and in call records.
        trace: The trace headers (W3C Trace Context).
        client: The client's name and version.
        principal: The caller.
        capabilities: The client's capabilities.
        created: The creation time, in seconds since 1970.
        updated: The time of the last change, in seconds since 1970.
        ttl: The retention in seconds from creation.
        poll: The suggested polling interval, in seconds.
        status: The task's status.
        message: A description of the status.
        is_error: Whether the task completed with an `isError` result.
        result: The key of the stored result.
        error: The JSON-RPC error with which the task failed.
        answers: The client's answers, keyed by question name.
        done: The results of `ctx.once` calls, keyed by their keys.
        tries: The number of times that each question was asked.
        pending: Pending questions, keyed by their wire keys.
        used: All wire keys used so far, which are not reused.
        run: The current run; its process may have crashed.
        attempt: The number of runs so far: a fencing token with which a database can reject a replaced run.
        deaths: The number of processes that died while running the task.
        origin: The ID of the abandoned task that this one repeats, with the same idempotency keys.
        is_abandoned: Whether the task was abandoned after too many deaths; its record retains the arguments.
        called: The tool name that the caller sent, which can be an alias.
    """

    id: str = field(default_factory=make_id)
    owner: str
    tool: str
    arguments: Mapping[str, Any]
    revision: str
    transport: Transport
    call_id: str
    trace: Mapping[str, str]
    client: tuple[str, str] | None
    principal: Principal
    capabilities: Mapping[str, Any] | None
    created: float
    updated: float
    ttl: float
    poll: float
    status: Status = "working"
    message: str | None = None
    is_error: bool = False
    result: str | None = None
    error: Mapping[str, Any] | None = None
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    done: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tries: Mapping[str, int] = field(default_factory=dict[str, int])
    pending: Mapping[str, Question] = field(default_factory=dict[str, Question])
    used: tuple[str, ...] = ()
    run: str | None = None
    attempt: int = 0
    deaths: int = 0
    origin: str | None = None
    is_abandoned: bool = False
    called: str | None = None

    @property
    def is_terminal(self) -> bool:
        """True if the status is final."""
        return self.status in OVER

    def move(self, status: Status, message: str | None = None, **changes: Any) -> Task:
        """Return the task with a new status. Questions are dropped unless that status is `input_required`.

        Raises:
            ValueError: The transition is not allowed.
        """
        if status not in _NEXT.get(self.status, ()):
            raise ValueError(f"a task cannot change from {self.status} to {status}")
        if status != "input_required":
            changes["pending"] = {}
        return replace(self, status=status, message=message, **changes)

    def wait_for(self, requests: Mapping[str, Mapping[str, Any]], **changes: Any) -> Task:
        """Return the task with pending questions from named requests, each under an unused key."""
        pending: dict[str, Question] = {}
        for name, request in requests.items():
            key, number = name, 1
            while key in self.used or key in pending:
                number += 1
                key = f"{name}~{number}"
            pending[key] = Question(name, request)
        used = (*self.used, *pending)
        return self.move("input_required", "Waiting for input.", pending=pending, used=used, run=None, **changes)

    def answer(self, responses: Mapping[str, Any]) -> Task | None:
        """Return the task with answers to its questions, or `None` if no answer matches a question."""
        given = {self.pending[key].name: response for key, response in responses.items() if key in self.pending}
        if not given or self.status != "input_required":
            return None
        unanswered = {key: question for key, question in self.pending.items() if key not in responses}
        answers = {**self.answers, **given}
        if unanswered:
            return replace(self, pending=unanswered, answers=answers)
        return self.move("working", answers=answers)

    def repeat(self, now: float) -> Task:
        """Return a new task that repeats this abandoned one, because finished tasks must not change."""
        return replace(
            self,
            id=make_id(),
            created=now,
            updated=now,
            status="working",
            message=None,
            error=None,
            run=None,
            deaths=0,
            origin=self.origin or self.id,
            is_abandoned=False,
        )

    def end(self) -> Task:
        """Return the task without the fields that only a run needs."""
        return replace(self, arguments={}, answers={}, done={}, tries={}, capabilities=None, trace={})

    def dump_head(self) -> bytes:
        """Return the owner and the fields that task lists contain, as JSON for `load`."""
        principal = replace(self.principal, claims={})
        return replace(self.end(), principal=principal, pending={}, used=(), error=None).dump()

    def dump(self) -> bytes:
        """Return the task as JSON."""
        data = {field_.name: getattr(self, field_.name) for field_ in dataclasses.fields(self)}
        data["principal"] = {
            "kind": self.principal.kind,
            "issuer": self.principal.issuer,
            "subject": self.principal.subject,
            "client": self.principal.client,
            "scopes": sorted(self.principal.scopes),
            "claims": self.principal.claims,
        }
        data["pending"] = {key: [question.name, question.request] for key, question in self.pending.items()}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def load(cls, data: bytes) -> Task:
        """Parse the output of `dump`."""
        fields: dict[str, Any] = json.loads(data)
        principal: dict[str, Any] = fields.pop("principal")
        fields["principal"] = replace(Principal(**principal), scopes=frozenset(principal["scopes"]))
        fields["pending"] = {key: Question(*parts) for key, parts in fields["pending"].items()}
        fields["used"] = tuple(fields["used"])
        fields["client"] = None if fields["client"] is None else tuple(fields["client"])
        return cls(**fields)
