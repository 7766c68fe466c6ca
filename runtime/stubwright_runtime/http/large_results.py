"""Results that are larger than a tool may give: a part, and a link to the whole.

Takes what a tool would give; gives it as it is, or where it is too large the start of its text with a resource link.
The call was made, and nothing of what came is lost for some minutes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from mcp_types import AudioContent, BlobResourceContents, EmbeddedResource, ImageContent

from ..server.features.large_results import SECONDS, STORE
from ..server.handlers.content import link, text
from ..server.handlers.returns import Unstructured
from ..values.units import parse_size
from .deviations import META

_DEFAULT: Final = 64 * 1024


def bounded(value: Any, name: str, policy: Mapping[str, Any]) -> Any:
    """Return what a tool gives.

    Args:
        value: What it would give.
        name: The tool's name.
        policy: Its policy, whose `maxResultBytes` is how large that may be; by default 64 KiB.
    """
    most = parse_size(policy.get("maxResultBytes", _DEFAULT))
    data, mime_type = _bytes(value)
    if len(data) <= most:
        return value
    uri = STORE.keep(data, mime_type)
    if uri is None:
        return value
    explanation = f"the result has {len(data):,} bytes; for {SECONDS / 60:g} minutes the whole can be read at {uri}"
    note = [text(f"({explanation})")]
    if mime_type.startswith("text/") or mime_type == "application/json":
        note.insert(0, text(data[:most].decode("utf-8", "ignore")))
    resource = link(uri, f"{name} result", description="The whole result.", mime_type=mime_type, size=len(data))
    violation = {"pointer": "", "keyword": "", "message": explanation}
    return Unstructured([*note, resource], meta={META: {"fits": False, "violations": [violation]}})


def _bytes(value: Any) -> tuple[bytes, str]:
    """Return what a result is outside of a message."""
    if isinstance(value, ImageContent | AudioContent):
        return base64.b64decode(value.data), value.mime_type
    if isinstance(value, EmbeddedResource) and isinstance(value.resource, BlobResourceContents):
        return base64.b64decode(value.resource.blob), value.resource.mime_type or "application/octet-stream"
    if isinstance(value, str):
        return value.encode("utf-8", "replace"), "text/plain"
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), "application/json"
    except (TypeError, ValueError, RecursionError):
        return b"", "text/plain"  # links, and what is no JSON, which the dispatcher tells of
