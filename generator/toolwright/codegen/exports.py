"""What packages export beside their models and the classes that are called after the server."""

from __future__ import annotations

from collections.abc import Mapping

EXPORTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "answers": {"._runtime.answers": ("Accepted", "Cancelled", "Declined")},
    "tools": {".registry": ("TOOLS",)},
    "server": {
        "._runtime.errors": ("ToolError",),
        "._runtime.server.audit": ("CallRecord",),
        "._runtime.server.content": ("audio", "embedded", "image", "link", "text"),
        "._runtime.server.returns": ("Content", "MaybeAwaitable", "Reply", "Returns"),
        ".server": ("asgi_app", "build_server"),
    },
    "completion": {"._runtime.server.completion": ("Completing",)},
    "prompts": {"._runtime.server.prompts": ("Messages", "assistant", "user")},
    "resources": {"._runtime.server.resources": ("ResourceContents",)},
    "client": {
        "._runtime.client.drift": ("DriftError", "DriftWarning"),
        "._runtime.client.errors": ("CallRefused", "InvalidResult", "ResultTooLarge", "ToolFailed"),
        "._runtime.client.responses": ("CallResponse",),
        "._runtime.client.live": ("list_prompts", "list_resource_templates", "list_resources", "list_tools"),
        "._runtime.client.options": ("OMIT", "CallEvent", "Omit"),
    },
    "lenient": {"._runtime.client.deviation": ("DeviatingResult",)},
    "pages": {"._runtime.client.paging": ("EndlessPages",)},
    "tasks": {
        "._runtime.client.task_errors": ("TaskCancelled", "TaskExpired", "TasksUnsupported"),
        "._runtime.client.task_states": ("ToolTaskState",),
        "._runtime.client.tasks": ("ToolTask",),
    },
    "changes": {"._runtime.client.subscriptions": ("ListChanged", "ResourceUpdated", "changes")},
    "handles": {
        "._runtime.server.handles": ("Handle", "StaleHandle", "TooManyHandles", "UnknownHandle"),
        "._runtime.state.budget": ("BudgetExceeded",),
        "._runtime.state.store": ("StateLost",),
    },
    "client_requests": {"._runtime.client.questions": ("Question",)},
}
"""What a package exports of each of its features, by the modules that define it."""
