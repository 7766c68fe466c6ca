"""Rules about tasks (MCP 2025-11-25, Tasks)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.compile.rules.http import list_calls
from stubwright.diagnostics import Diagnostic
from stubwright_runtime.package import is_exchange

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.ir import Json

_FIX = "add `execution: {taskSupport: optional}`, or `required`, next to its `inputSchema`"


def check_possible(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tools with `task` run as tasks."""
    for tool in resolved.tools:
        if "task" in tool.extension and not _runs_as_task(tool.wire):
            yield Diagnostic("SW259", f"`{tool.name}` never runs as a task", tool.place_of("task").point_at_key(), _FIX)


def check_asked_before(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that questions before a task belong to a task tool and are forms: only the handler provides a URL."""
    tasks = {tool.place for tool in resolved.tools if _runs_as_task(tool.wire)}
    tools = {tool.place for tool in resolved.tools}
    for declared in resolved.declared:
        for name, question in (declared.extension.get("ask") or {}).items():
            if question.get("before") != "task":
                continue
            at = declared.place_of("ask", name, "before")
            if declared.place not in tasks:
                fix = _FIX if declared.place in tools else "remove it: only tools run as tasks"
                yield Diagnostic(
                    "SW259", f"`{name}` is asked before a task, but `{declared.name}` never runs as one", at, fix
                )
            elif question.get("mode") == "url":
                fix = "remove it: the handler, which provides the URL, runs in the task"
                yield Diagnostic("SW259", f"`{name}` opens a URL, which only exists once the task runs", at, fix)


def check_exchanged(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no task exchanges the caller's token, since tasks do not store it.

    Without `auth`, all callers are local, with tokens in environment variables. SW336 reports the rest.
    """
    schemes = {api.name: api.settings.get("auth") or {} for api in resolved.apis}
    defaults = {api.name: api.settings.get("security") or [] for api in resolved.apis}
    for tool, http in list_calls(resolved):
        api = http.get("api", "")
        exchanged = {name for name, scheme in schemes.get(api, {}).items() if is_exchange(scheme)}
        security = http.get("security", defaults.get(api, []))
        if resolved.entry.get("auth") and _runs_as_task(tool.wire) and _always_needs(exchanged, security):
            yield Diagnostic(
                "SW259",
                f"`{tool.name}` exchanges its caller's token, which a task does not have",
                tool.place / "execution" / "taskSupport",
                "write `forbidden`, or use another flow, such as `clientCredentials`",
            )


def _always_needs(schemes: Container[str], security: Sequence[Sequence[str]]) -> bool:
    """Return whether every alternative that the server can choose includes one of `schemes`.

    The server chooses the first alternative for which all variables are set. A token exchange requires no variables.
    """
    for alternative in security:
        if not any(scheme in schemes for scheme in alternative):
            return False
        if all(scheme in schemes for scheme in alternative):
            return True
    return bool(security)


def _runs_as_task(definition: Json) -> bool:
    execution = definition.get("execution") if isinstance(definition, dict) else None
    return isinstance(execution, dict) and execution.get("taskSupport") in ("optional", "required")
