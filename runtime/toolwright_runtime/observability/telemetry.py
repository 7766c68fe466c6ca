"""What OpenTelemetry learns of requests, in servers and clients alike: names of attributes, and how durations are kept.

Takes methods and parameters; gives attributes, as the semantic conventions for MCP have them
(https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/). The spans are the SDK's own; nothing here starts one. Without
an OpenTelemetry SDK, all of it does nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp_types.methods import SPEC_CLIENT_METHODS, SPEC_CLIENT_NOTIFICATION_METHODS
from opentelemetry import metrics

from ..values.terminal import one_line

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

_BOUNDARIES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds, as the conventions have them for all four metrics."""

LONGEST: Final = 200
"""Characters of what others called something."""

LARGEST: Final = 64 * 1024
"""Characters of arguments, or of a result, that are shown; larger ones are not."""

_OF_TASKS: Final = frozenset(f"tasks/{name}" for name in ("cancel", "get", "list", "result", "update"))
"""The methods of tasks, which the SDK has in none of its tables."""

OTHER: Final = "_OTHER"
"""What stands for a name that is none of those that there are, in metrics."""

HTTP: Final[Mapping[str, AttributeValue]] = {"network.transport": "tcp", "network.protocol.name": "http"}
PIPE: Final[Mapping[str, AttributeValue]] = {"network.transport": "pipe"}


def histogram(name: str, description: str) -> metrics.Histogram:
    """A metric of durations in seconds."""
    meter = metrics.get_meter("toolwright")
    try:
        return meter.create_histogram(
            name, unit="s", description=description, explicit_bucket_boundaries_advisory=_BOUNDARIES
        )
    except TypeError:  # before 1.30, where nobody can advise
        return meter.create_histogram(name, unit="s", description=description)


def is_method(method: str) -> bool:
    """Whether MCP has this method for requests or notifications of clients, in some revision."""
    return method in SPEC_CLIENT_METHODS or method in SPEC_CLIENT_NOTIFICATION_METHODS or method in _OF_TASKS


def short(text: str) -> str:
    """What somebody else called something: one line of bounded length."""
    text = text[:LONGEST]
    return text if text.isascii() and text.isprintable() else one_line(text)


def of_request(method: str, params: Mapping[str, Any] | None) -> dict[str, AttributeValue]:
    """What a request is about, with names as they came, but short."""
    found: dict[str, AttributeValue] = {"mcp.method.name": short(method)}
    name, uri = (params or {}).get("name"), (params or {}).get("uri")
    if method == "tools/call":
        found["gen_ai.operation.name"] = "execute_tool"
    if method in ("tools/call", "prompts/get") and isinstance(name, str):
        found["gen_ai.tool.name" if method == "tools/call" else "gen_ai.prompt.name"] = short(name)
    if method.startswith("resources/") and isinstance(uri, str):
        found["mcp.resource.uri"] = short(uri)
    return found


def session(key: str) -> str:
    """What a session is called: not by its id, which lets whoever has it go on with the session."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]
