"""Converts tasks to the wire formats of MCP 2025-11-25 and of the 2026-07-28 extension.

A task whose tool returns `isError` is `failed` in 2025-11-25 but `completed` in the extension.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..mcp.downgrades import downgrade_result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..mcp.revisions import Revision
    from .records import Task

EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The extension that MCP 2026-07-28 clients declare if they support tasks."""

RELATED: Final = "io.modelcontextprotocol/related-task"


def relate(task: str) -> dict[str, Any]:
    """Return the `_meta` for a message about a task (MCP 2025-11-25, "Associating Task-Related Messages")."""
    return {RELATED: {"taskId": task}}


def to_handshake_task(task: Task) -> dict[str, Any]:
    """Convert a task to its format in MCP 2025-11-25 (schema, `Task`)."""
    return {
        **_common_fields(task, "failed" if task.is_error else task.status),
        "ttl": _to_milliseconds(task.ttl),
        "pollInterval": _to_milliseconds(task.poll),
    }


def to_task(task: Task) -> dict[str, Any]:
    """Convert a task to the extension's `Task`."""
    return {
        **_common_fields(task, task.status),
        "ttlMs": _to_milliseconds(task.ttl),
        "pollIntervalMs": _to_milliseconds(task.poll),
    }


def to_detailed_task(task: Task, result: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert a task, with its result, error or questions, to the extension's `DetailedTask`."""
    fields = to_task(task)
    if task.status == "completed":
        fields["result"] = {"resultType": "complete", **(result or {})}
    elif task.status == "failed":
        fields["error"] = task.error
    elif task.status == "input_required":
        fields["inputRequests"] = {key: question.request for key, question in task.pending.items()}
    return fields


def to_final_result(
    task: Task, result: dict[str, Any], definition: Mapping[str, Any], revision: Revision
) -> dict[str, Any]:
    """Return the result for `tasks/result`: the call's result, with the task's ID."""
    fitting = downgrade_result(result, definition, revision)
    return {**fitting, "_meta": {**fitting.get("_meta", {}), **relate(task.id)}}


def _common_fields(task: Task, status: str) -> dict[str, Any]:
    fields = {
        "taskId": task.id,
        "status": status,
        "createdAt": _format_time(task.created),
        "lastUpdatedAt": _format_time(task.updated),
    }
    return fields if task.message is None else {**fields, "statusMessage": task.message}


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
