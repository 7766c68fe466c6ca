"""Adds missing fields to results, and reduces huge invalid results to samples.

pydantic's errors take kilobytes per invalid entry, so half a megabyte of `5,5,5` would take a gigabyte.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import Any, Final

from ...values.json import Json, is_mapping
from .bounds import MOST_BLOCKS

_ITEMS: Final = 128
_KEYS: Final = 1024  # an object with more keys is a map; all of its values have the same schema
_ANYTHING: Final = frozenset({"structuredContent", "_meta"})
"""Keys whose values MCP does not restrict."""


def complete_result(result: dict[str, Any]) -> None:
    """Add missing defaults to a result, in place.

    - `resultType` is "complete" (MCP 2026-07-28, schema, `Result`). Older revisions ignore it.
    - `content` is empty if there is `structuredContent` (`CallToolResult`).
    - An `isError` of null is removed (`CallToolResult`).
    - The `type` of an `inputSchema` is "object" (`Tool`).
    """
    result.setdefault("resultType", "complete")
    if "structuredContent" in result:
        result.setdefault("content", [])
    if result.get("isError", False) is None:
        del result["isError"]
    tools: Json = result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        schema: Json = tool.get("inputSchema") if is_mapping(tool) else None
        if isinstance(schema, dict):
            schema.setdefault("type", "object")


def drop_invalid_fields(value: Json) -> Json:
    """Return a value, or, if it contains huge lists or objects, a copy with a sample of their entries."""
    if isinstance(value, list):
        some = value if len(value) <= _ITEMS else [value[0], *random.sample(value, _ITEMS)]
        below = [drop_invalid_fields(item) for item in some]
        return value if _are_identical(below, value) else below
    if isinstance(value, dict):
        keys = list(value)
        if len(keys) > _KEYS:
            keys = [*islice(keys, _KEYS // 2), *random.sample(keys[_KEYS // 2 :], _KEYS // 2)]
        entries = {key: value[key] if key in _ANYTHING else drop_invalid_fields(value[key]) for key in keys}
        return value if _are_identical(list(entries.values()), list(value.values())) else entries
    return value


def _are_identical(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(item is other for item, other in zip(some, others, strict=True))


def repair_fields(result: dict[str, Any], method: str, revision: str) -> dict[str, Any]:
    """Return a result unchanged if a sample of its entries is valid, otherwise with only the entries in that sample.

    Args:
        result: The result.
        method: The request's method.
        revision: The protocol revision.
    """
    some = drop_invalid_fields(result)
    if some is result or not isinstance(some, dict):
        return result

    from mcp_types.methods import parse_server_result
    from pydantic import ValidationError

    try:
        parse_server_result(method, revision, some)
    except ValidationError:
        return some
    except (KeyError, ValueError, RuntimeError):  # the SDK does not define this method or revision
        pass
    return result


def find_crowded(result: dict[str, Any]) -> str | None:
    """Return an error message for a result with too many entries, or `None` for other results."""
    for key in ("content", "contents", "messages"):
        blocks: Json = result.get(key)
        if isinstance(blocks, list) and len(blocks) > MOST_BLOCKS:
            return f"its {key!r} has {len(blocks):,} entries, more than {MOST_BLOCKS:,}"
    return None
