"""Truncates results that exceed a tool's limit, and links to the full result, which is stored."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from mcp_types import AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink

from ..server.features.large_results import store_result
from ..server.handlers.content import link, text
from ..server.handlers.returns import UnstructuredReply
from ..state.budget import BudgetExceeded
from ..state.store import StateLost
from ..values import tokens
from ..values.units import parse_duration, parse_size
from .deviations import META

if TYPE_CHECKING:
    from ..package import Tool
    from ..server.features.context import Context
    from ..state.store import Store

_DEFAULT: Final = 64 * 1024

_SECONDS: Final = 600.0
"""The minimum lifetime of a stored result."""


async def bound_result(value: Any, tool: Tool, ctx: Context, store: Store) -> Any:
    """Return a tool's result. If it exceeds a limit, truncate it and link to the stored full result.

    Args:
        value: The tool's result.
        tool: The tool; `policy.maxResultBytes` (64 KiB by default) and `budget.result` are the limits.
        ctx: The context of the call.
        store: The store for the full result.
    """
    most, most_tokens = parse_size(tool.policy.get("maxResultBytes", _DEFAULT)), tool.result_budget
    data, mime_type = _bytes(value)
    is_text = mime_type.startswith("text/") or mime_type == "application/json"
    size = tokens.estimate(len(data.decode("utf-8", "ignore"))) if is_text and most_tokens is not None else 0
    is_over_budget = most_tokens is not None and size > most_tokens
    if len(data) <= most and not is_over_budget:
        return value
    amount = f"{len(data):,} bytes" + (f", about {size:,} tokens" if is_over_budget else "")
    links: list[ResourceLink] = []
    ttl = _choose_ttl(tool, ctx)
    try:
        uri = await store_result(store, ctx.principal, data, mime_type, ttl)
    except BudgetExceeded as error:
        explanation = (
            f"the result has {amount}, and is not stored because the {error.whose}'s storage has no room for it"
        )
    except StateLost:  # logged by the store; the call may have had an effect, so it still gets its result's start
        explanation = f"the result has {amount}, and is not stored because the server's store cannot be reached"
    else:
        explanation = f"the result has {amount}; the full result is available at {uri} for {ttl / 60:,g} minutes"
        links = [link(uri, f"{tool.name} result", description="The full result.", mime_type=mime_type, size=len(data))]
    note = [text(f"({explanation})")]
    if is_text:
        start = data[:most].decode("utf-8", "ignore")
        if most_tokens is not None:
            beside = len(note[0].text) + sum(len(each.model_dump_json(by_alias=True)) for each in links)
            start = start[: max(tokens.fit(most_tokens) - beside, 0)]
        note.insert(0, text(start))
    violation = {"pointer": "", "keyword": "", "message": explanation}
    return UnstructuredReply([*note, *links], meta={META: {"fits": False, "violations": [violation]}})


def _choose_ttl(tool: Tool, ctx: Context) -> float:
    """Return the lifetime of a stored result in seconds, at least the lifetime of responses that link to it."""
    ttl = _SECONDS
    if "once" in tool.policy:
        from ..policy.once import FOR

        ttl = max(ttl, parse_duration(tool.policy["once"].get("for", FOR)))
    if ctx.task_id is not None:
        from ..tasks.service import TTL

        ttl = max(ttl, parse_duration((tool.extension.get("task") or {}).get("ttl", TTL)))
    return ttl


def _bytes(value: Any) -> tuple[bytes, str]:
    if isinstance(value, ImageContent | AudioContent):
        return base64.b64decode(value.data), value.mime_type
    if isinstance(value, EmbeddedResource) and isinstance(value.resource, BlobResourceContents):
        return base64.b64decode(value.resource.blob), value.resource.mime_type or "application/octet-stream"
    if isinstance(value, str):
        return value.encode("utf-8", "replace"), "text/plain"
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), "application/json"
    except (TypeError, ValueError, RecursionError):
        return b"", "text/plain"  # links have no size, and the dispatcher reports values that are not JSON
