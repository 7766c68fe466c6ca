"""Compares a server's tools with the compiled ones.

Key order is ignored, and `1` equals `1.0`. Fields that the connection's revision does not define are skipped.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mcp_types import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ListToolsRequest,
    PaginatedRequestParams,
    PaginatedResult,
)

from ...mcp.downgrades import downgrade_tool
from ...mcp.revisions import SINCE, Revision
from ...mcp.tool_fields import FIELDS, normalize_field
from ...values.json import Json
from ...values.terminal import replace_controls
from ..rpc.mcp_error import MCPError
from .list_pages import fetch_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...package import Package, Tool
    from ..core.options import Options
    from ..core.session import Session

Drift: TypeAlias = Literal["ignore", "warn", "error"]
"""The reaction if tools differ from the compiled ones: none, a `DriftWarning`, or a `DriftError`."""

_DETAILS: Final = 6  # the maximum number of differences shown per field
_LONGEST: Final = 60  # the maximum length of a quoted value, in characters


class _Page(PaginatedResult):
    tools: list[dict[str, Any]]
    result_type: str = "complete"


_CHANGES: Final = 20
"""The maximum number of changed tools that a message lists."""


def _format_message(changes: Sequence[str]) -> str:
    more = [f"and {len(changes) - _CHANGES} more"] if len(changes) > _CHANGES else []
    lines = "".join(f"\n  {line}" for line in [*changes[:_CHANGES], *more])
    return replace_controls(f"the server's tools differ from the tools this client was compiled for:{lines}")


class DriftError(Exception):
    """The server's tools differ from the compiled ones. The message lists one difference per line.

    Attributes:
        changes: One line per added, changed or removed tool.
    """

    def __init__(self, changes: Sequence[str]) -> None:
        """Create an error from one line per changed tool."""
        super().__init__(_format_message(changes))
        self.changes = tuple(changes)


class DriftWarning(UserWarning):
    """The server's tools differ from the compiled ones. The message lists one difference per line.

    Attributes:
        changes: One line per added, changed or removed tool.
    """

    def __init__(self, changes: Sequence[str]) -> None:
        """Create a warning from one line per changed tool."""
        super().__init__(_format_message(changes))
        self.changes = tuple(changes)


async def report_drift(
    session: Session, package: Package, toolsets: Sequence[str], options: Options, drift: Drift
) -> None:
    """Compare the server's tools with the package's tools.

    Args:
        session: An open connection's session.
        package: The compiled package.
        toolsets: The client's toolsets; the package's other tools are ignored.
        options: The options for the `tools/list` requests.
        drift: Whether to warn or to raise.

    Raises:
        DriftError: The tools differ, and `drift` is `error`.
        MCPError: The server rejects `tools/list` or times out, or the connection failed.
    """
    try:
        live = await _list_tools(session, options)
    except MCPError as error:
        if error.code not in (PARSE_ERROR, INVALID_REQUEST):
            raise
        changes = [f"its list of tools is not valid MCP: {error.message}"]
    else:
        changes = list(compare(*_select(package, toolsets, live), session.client.protocol_version))
    if changes and drift == "error":
        raise DriftError(changes)
    if changes:
        # The warning points to the `async with` statement that connects.
        warnings.warn(DriftWarning(changes), stacklevel=4)


def _select(
    package: Package, toolsets: Sequence[str], live: Sequence[dict[str, Any]]
) -> tuple[Mapping[str, Tool], Sequence[dict[str, Any]]]:
    """Return the compiled tools and the server's tools, without the package's tools that are outside the toolsets.

    Server objects in the same process list all tools. A toolset that the package does not define has no effect.
    """
    declared = package.manifest.get("toolsets", {})
    outside = {
        tool for name in toolsets if name in declared for tool in package.tools.keys() - set(declared[name]["tools"])
    }
    compiled = {name: tool for name, tool in package.tools.items() if name not in outside}
    return compiled, [tool for tool in live if tool.get("name") not in outside]


async def _list_tools(session: Session, options: Options) -> Sequence[dict[str, Any]]:
    async def fetch_page(cursor: str | None) -> _Page:
        request = ListToolsRequest(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
        return await session.send(request, _Page, options)

    try:
        return [tool async for listing in fetch_pages(fetch_page, options.max_result_bytes) for tool in listing.tools]
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return []


def compare(tools: Mapping[str, Tool], live: Sequence[Mapping[str, Any]], revision: str) -> Iterator[str]:
    """Yield a line per changed or removed tool, in the manifest's order, then a line per new tool.

    Args:
        tools: The compiled tools.
        live: The tools that the server lists.
        revision: The connection's revision.
    """
    now = {str(tool.get("name")): tool for tool in live}
    for name, tool in tools.items():
        if name not in now:
            yield f"{_shorten_json(name)} is no longer listed"
        elif changed := list(_compare_fields(tool, now[name], revision)):
            yield f"{_shorten_json(name)}: {'; '.join(changed)}"
    for name in now:
        if name not in tools:
            yield f"{_shorten_json(name)} is new"


def _compare_fields(tool: Tool, live: Mapping[str, Any], revision: str) -> Iterator[str]:
    compiled = tool.definition if "outputSchema" in live else tool.listed
    carried = downgrade_tool(compiled, Revision.from_date(revision))
    for field in FIELDS:
        was, is_ = normalize_field(field, compiled.get(field)), normalize_field(field, live.get(field))
        if is_ is None and (revision < SINCE["tools"].get(field, "") or field not in carried):
            continue
        differences = list(_find_differences(was, is_, ""))
        if not differences:
            continue
        if was is None or is_ is None:
            verb = "are" if field == "annotations" else "is"
            yield f"its {field} {verb} {'new' if was is None else 'gone'}"
        elif isinstance(was, dict) and isinstance(is_, dict):
            more = f" and {len(differences) - _DETAILS} more" if len(differences) > _DETAILS else ""
            yield f"its {field} changed: {', '.join(differences[:_DETAILS])}{more}"
        else:
            yield f"its {field}{differences[0]}"


def _find_differences(was: Json, is_: Json, at: str) -> Iterator[str]:
    """Yield each difference between two JSON values with its JSON Pointer, in the order of the first value."""
    if isinstance(was, dict) and isinstance(is_, dict):
        for key in was | is_:
            place = f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in is_:
                yield f"{_quote(place)} is gone"
            elif key not in was:
                yield f"{_quote(place)} is new"
            else:
                yield from _find_differences(was[key], is_[key], place)
    elif isinstance(was, list) and isinstance(is_, list) and len(was) == len(is_):
        for index, (old, new) in enumerate(zip(was, is_, strict=True)):
            yield from _find_differences(old, new, f"{at}/{index}")
    elif was != is_ or isinstance(was, bool) != isinstance(is_, bool):
        yield f"{_quote(at)} was {_shorten_json(was)}, is {_shorten_json(is_)}"


def _shorten_json(value: Any) -> str:
    """Format a value as short ASCII JSON, which is safe to print on a terminal."""
    return _shorten(json.dumps(value))


def _quote(place: str) -> str:
    return _shorten(json.dumps(place)[1:-1])


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
