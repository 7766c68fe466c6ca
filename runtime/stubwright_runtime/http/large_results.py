"""Truncates results that exceed a tool's limit, and links to the full result, which is stored for some minutes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from mcp_types import AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink

from ..server.features.large_results import SECONDS, STORE
from ..server.handlers.content import link, text
from ..server.handlers.returns import UnstructuredReply
from ..values import tokens
from ..values.units import parse_size
from .deviations import META

_DEFAULT: Final = 64 * 1024


def bound_result(value: Any, name: str, policy: Mapping[str, Any], most_tokens: int | None = None) -> Any:
    """Return a tool's result. If it exceeds a limit, truncate it and link to the stored full result.

    Args:
        value: The tool's result.
        name: The tool's name.
        policy: The tool's policy; `maxResultBytes` is the limit, by default 64 KiB.
        most_tokens: The maximum number of text tokens (`budget.result`).
    """
    most = parse_size(policy.get("maxResultBytes", _DEFAULT))
    data, mime_type = _bytes(value)
    is_text = mime_type.startswith("text/") or mime_type == "application/json"
    size = tokens.estimate(len(data.decode("utf-8", "ignore"))) if is_text and most_tokens is not None else 0
    is_over_budget = most_tokens is not None and size > most_tokens
    if len(data) <= most and not is_over_budget:
        return value
    uri = STORE.keep(data, mime_type)
    amount = f"{len(data):,} bytes" + (f", about {size:,} tokens" if is_over_budget else "")
    if uri is None:
        explanation = f"the result has {amount}, and is not stored because the limit is {STORE.largest:,}"
        links: list[ResourceLink] = []
    else:
        explanation = f"the result has {amount}; the full result is available at {uri} for {SECONDS / 60:g} minutes"
        links = [link(uri, f"{name} result", description="The full result.", mime_type=mime_type, size=len(data))]
    note = [text(f"({explanation})")]
    if is_text:
        start = data[:most].decode("utf-8", "ignore")
        if most_tokens is not None:
            beside = len(note[0].text) + sum(len(each.model_dump_json(by_alias=True)) for each in links)
            start = start[: max(tokens.fit(most_tokens) - beside, 0)]
        note.insert(0, text(start))
    violation = {"pointer": "", "keyword": "", "message": explanation}
    return UnstructuredReply([*note, *links], meta={META: {"fits": False, "violations": [violation]}})


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
