"""Parses `traceparent` (W3C Trace Context, 3.2) without OpenTelemetry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ...values.json import is_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

_TRACEPARENT: Final = re.compile(
    r"(?!ff|00-.{52}-)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]*)?"
)
"""Version `ff` and all-zero IDs are invalid."""


def read_trace_id(traceparent: object) -> str | None:
    """Return the trace ID of a `traceparent` in hexadecimal; `None` if the value is invalid."""
    match = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return None if match is None else match[1]


def find_traceparent(params: Mapping[str, Any] | None, header: str | None) -> str | None:
    """Return a request's `traceparent`, from `_meta` (SEP-414) or the HTTP header; `None` if neither is valid."""
    meta = (params or {}).get("_meta")
    in_meta = meta.get("traceparent") if is_mapping(meta) else None
    return next((text for text in (in_meta, header) if read_trace_id(text) is not None), None)
