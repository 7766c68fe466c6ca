"""OpenTelemetry for servers and clients: request attributes and duration histograms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics

from ..values.terminal import shorten

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

_BOUNDARIES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The bucket boundaries in seconds of the four duration metrics in OpenTelemetry's MCP conventions."""

LARGEST: Final = 64 * 1024
"""The maximum length of a call's arguments or result in a span, in characters."""

_CLIENT_METHODS: Final = frozenset(
    {
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/directory/read",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "skills/get",
        "skills/list",
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tasks/update",
        "tools/call",
        "tools/list",
    }
)
"""The methods of clients' requests and notifications in all revisions and extensions."""

OTHER: Final = "_OTHER"
"""The value that replaces unknown names in metrics, to limit the number of series."""

HTTP: Final[Mapping[str, AttributeValue]] = {"network.transport": "tcp", "network.protocol.name": "http"}
PIPE: Final[Mapping[str, AttributeValue]] = {"network.transport": "pipe"}


def create_histogram(name: str, description: str) -> metrics.Histogram:
    """Create a histogram of durations in seconds."""
    return metrics.get_meter("stubwright").create_histogram(
        name, unit="s", description=description, explicit_bucket_boundaries_advisory=_BOUNDARIES
    )


def is_method(method: str) -> bool:
    """Return whether a method exists for clients in any revision or extension."""
    return method in _CLIENT_METHODS


def describe_request(method: str, params: Mapping[str, Any] | None) -> dict[str, AttributeValue]:
    """Return a request's telemetry attributes; long names are shortened."""
    attributes: dict[str, AttributeValue] = {"mcp.method.name": shorten(method)}
    name, uri = (params or {}).get("name"), (params or {}).get("uri")
    if method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    if method in ("tools/call", "prompts/get") and isinstance(name, str):
        attributes["gen_ai.tool.name" if method == "tools/call" else "gen_ai.prompt.name"] = shorten(name)
    if method.startswith("resources/") and isinstance(uri, str):
        attributes["mcp.resource.uri"] = shorten(uri)
    return attributes


def hash_session(key: str) -> str:
    """Hash a session ID, because the ID itself grants access to the session."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]
