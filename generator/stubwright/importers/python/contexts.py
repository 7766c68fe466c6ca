"""Describes how each `Context` member behaves after a function's migration, and what replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALL: Final = "*"
"""Marks unknown uses, as in `program.py`."""

OF_REQUEST: Final = frozenset({"get_state", "set_state", "delete_state"})
"""Members that FastMCP 2 stores per request and later versions store per connection."""

_LOGS: Final = frozenset({"debug", "info", "warning", "error", "log"})

_QUESTIONS: Final = frozenset({"elicit", "elicit_url", "sample", "sample_step", "list_roots"})

_KEPT: Final = frozenset(
    {
        "report_progress",
        "read_resource",
        "get_prompt",
        "list_resources",
        "list_prompts",
        "fastmcp",
        "mcp_server",
        "lifespan_context",
        "request_id",
        "origin_request_id",
    }
)
"""Members that keep working in the old server."""

_SAME_FOR_ALL: Final = "the same for all callers, since the old server has one client, the new server"
_NOT_SENT: Final = "does not reach callers"
_NO_HTTP: Final = "there is no HTTP request"
_OWN: Final = "of the new server, not of its caller"

_CHANGED: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("client_id", "session_id"), (_SAME_FOR_ALL, "`ctx.principal`")),
    **dict.fromkeys(sorted(OF_REQUEST), (_SAME_FOR_ALL, "a state handle")),
    **dict.fromkeys(
        ("headers", "get_http_request", "get_http_headers", "get_access_token"), (_NO_HTTP, "`ctx.principal`")
    ),
    **dict.fromkeys(("client_capabilities", "client_supports_extension"), (_OWN, "`ctx.can`")),
    **dict.fromkeys(("protocol_version", "transport"), (_OWN, "`ctx.revision`")),
    **dict.fromkeys(("send_notification", "notify_resource_updated"), (_NOT_SENT, "`ctx.resources.updated`")),
    **dict.fromkeys(("notify_tools_changed", "send_tool_list_changed"), (_NOT_SENT, "`ctx.tools.enable`")),
    **dict.fromkeys(("notify_prompts_changed", "send_prompt_list_changed"), (_NOT_SENT, "`ctx.prompts.enable`")),
    **dict.fromkeys(("notify_resources_changed", "send_resource_list_changed"), (_NOT_SENT, "`ctx.resources.enable`")),
    **dict.fromkeys(
        ("enable_components", "disable_components", "reset_visibility"), (_SAME_FOR_ALL, "`ctx.tools.enable`")
    ),
    **dict.fromkeys(("input_responses", "request_state"), ("not passed on", "questions under `ask`")),
    **dict.fromkeys(("close_sse_stream", "close_standalone_sse_stream"), ("does nothing", "`ctx.release_stream`")),
    **dict.fromkeys(("task_id", "is_background_task"), ("never set", "`ctx.task_id`")),
}
"""Members of both `Context` classes, and functions of FastMCP, whose behavior changes: the effect and the
replacement."""

_RAW: Final = "belongs to the connection between the two servers; only logs, progress and questions reach the caller"
_UNREAD: Final = "passes its Context to code that was not analyzed: only logs, progress and questions reach the caller"
_ASKS: Final = "as before, works in MCP 2025-11-25 and earlier, but fails for newer callers; use questions under `ask`"


@dataclass(frozen=True, slots=True)
class Uses:
    """A function's uses of `Context`.

    Attributes:
        logs: True if it might log.
        asks: True if it might send questions to its caller.
        notes: The members that change, each with its replacement.
    """

    logs: bool
    asks: bool
    notes: tuple[str, ...]


def analyze(names: Iterable[str]) -> Uses:
    """Return a function's uses of `Context`, given the names of the members it uses."""
    used = sorted({*names})
    is_open = any(name == ALL or name not in _KEPT | _LOGS | _QUESTIONS | _CHANGED.keys() for name in used)
    notes: dict[str, list[str]] = {}
    for name in used:
        if (note := _describe(name)) is not None:
            notes.setdefault(note, []).append(name)
    return Uses(
        is_open or not _LOGS.isdisjoint(used),
        is_open or not _QUESTIONS.isdisjoint(used),
        tuple(_join(names, note) for note, names in notes.items()),
    )


def _describe(name: str) -> str | None:
    if name in _KEPT or name in _LOGS:
        return None
    if name == ALL:
        return _UNREAD
    if name in _QUESTIONS:
        return _ASKS
    if name in _CHANGED:
        reason, instead = _CHANGED[name]
        return f"{reason}; use {instead}"
    return _RAW


def _join(names: Iterable[str], note: str) -> str:
    return note if note == _UNREAD else f"{', '.join(f'`{name}`' for name in names)}: {note}"
