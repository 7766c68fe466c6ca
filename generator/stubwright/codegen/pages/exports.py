"""Lists the runtime names that packages export: at run time all names, to type checkers only the names in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from stubwright import ir

_ANSWERS: Final = ("Accepted", "Cancelled", "Declined")
_SERVER: Final = (
    *("CallRecord", "Content", "Context", "MaybeAwaitable", "Reply", "Returns", "ToolError"),
    *("audio", "embedded", "image", "link", "text"),
)
_CLIENT: Final = (
    *("CallEvent", "CallRefused", "CallResponse", "DriftError", "DriftWarning", "InvalidResult", "ListChanged"),
    *("OMIT", "Omit", "Question", "ResourceUpdated", "ResultTooLarge", "ToolFailed"),
    *("changes", "list_prompts", "list_resource_templates", "list_resources", "list_tools"),
)
_CONNECTING: Final = (
    *("ConnectError", "Forbidden", "MCPError", "NotFound", "NotMCP"),
    *("ServerExited", "ServerNotFound", "SessionLost", "Unauthorized", "Unreachable"),
)
_AROUND: Final = ("HandlerCall", "Proceed")
_CONTENT: Final = "ToolContent"
_YIELDING: Final = frozenset({*_CONNECTING, *_AROUND, _CONTENT})
"""Newer names. Packages whose own classes have these names keep them; `generated` exports the runtime's."""

_TASKS: Final = ("TaskCancelled", "TaskExpired", "TasksUnsupported", "ToolTask", "ToolTaskState")
_HANDLES: Final = ("BudgetExceeded", "Handle", "StaleHandle", "StateLost", "TooManyHandles", "UnknownHandle")
_PARTS: Final = {
    "completion": ("Completing",),
    "prompts": ("Messages", "assistant", "user"),
    "resources": ("ResourceContents",),
}

OWN: Final = {"registry": ("TOOLS",), "server": ("asgi_app", "build_server")}
"""Names that packages define in addition to models and classes, keyed by module."""

ALWAYS: Final = frozenset({*_ANSWERS, *_SERVER, *_CLIENT, *_TASKS, "DeviatingResult", "EndlessPages"}).union(
    *_PARTS.values(), *OWN.values()
)
"""Names that a package's classes cannot have."""

OF_HANDLES: Final = frozenset(_HANDLES)
"""Reserved names if the server has state handles."""

OF_PAGES: Final = frozenset({"PageRequest"})
"""Reserved names if a tool has pages."""


def list_exported(manifest: ir.Manifest, parts: Iterable[str], own: Set[str]) -> frozenset[str]:
    """Return the runtime names that a package exports.

    Args:
        parts: The package's features other than tools.
        own: The names that the package defines itself.
    """
    return frozenset(_list_exports(manifest, parts)) - (_YIELDING & own)


def _list_exports(manifest: ir.Manifest, parts: Iterable[str]) -> Iterator[str]:
    if manifest.emit:
        yield from _ANSWERS
    if "server" in manifest.emit:
        yield from _SERVER
        yield from _AROUND
        for part in parts:
            yield from _PARTS[part]
        if manifest.handles:
            yield from _HANDLES
        if any(tool.paginate for tool in manifest.tools):
            yield from OF_PAGES
    if "client" in manifest.emit:
        yield from _CLIENT
        yield from _CONNECTING
        if any(tool.output is None for tool in manifest.tools):
            yield _CONTENT
        if any(tool.task_support != "forbidden" for tool in manifest.tools):
            yield from _TASKS
        if any(tool.http.get("output") == "lenient" or "large" in tool.http for tool in manifest.tools):
            yield "DeviatingResult"
        if any("page" in tool.http or tool.paginate for tool in manifest.tools):
            yield "EndlessPages"
