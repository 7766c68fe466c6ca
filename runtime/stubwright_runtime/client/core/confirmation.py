"""Confirms calls that are dangerous according to the compiled manifest; the server's current hints are untrusted."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

from .errors import CallRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...package import Tool
    from .options import Options


async def confirm_call(tool: Tool, arguments: Mapping[str, Any], options: Options) -> None:
    """Call `confirm`, if set, for a dangerous tool, or for every tool if `confirm_all` is set.

    Raises:
        CallRefused: `confirm` did not return `True`.
    """
    confirm = options.confirm
    if confirm is None or not (options.confirm_all or is_dangerous(tool)):
        return
    answer = confirm(tool.name, copy.deepcopy(arguments))
    if (await answer if inspect.isawaitable(answer) else answer) is not True:
        raise CallRefused(tool.name, arguments)


def is_dangerous(tool: Tool) -> bool:
    """Return whether the manifest requires confirmation for each call to a tool."""
    return requires_confirmation(tool.policy, tool.definition.get("annotations"), tool.package.manifest.get("client"))


def requires_confirmation(
    policy: Mapping[str, Any], annotations: Mapping[str, Any] | None, client: Mapping[str, Any] | None
) -> bool:
    """Return whether the tool's policy and annotations, and the manifest's `client`, require confirmation of its calls.

    `policy.confirm` decides if set. Otherwise the annotations decide: a tool is destructive unless it has
    `readOnlyHint: true` or `destructiveHint: false` (MCP 2025-11-25, schema, `ToolAnnotations`, defaults). With
    `client: {hints: untrusted}`, annotations count only for a tool with `policy.trusted` (MCP 2025-11-25,
    server/tools: annotations are untrusted unless they come from trusted servers).
    """
    wanted = policy.get("confirm")
    if wanted is not None:
        return wanted is not False
    if (client or {}).get("hints") == "untrusted" and policy.get("trusted") is not True:
        return True
    hints = annotations or {}
    return hints.get("readOnlyHint") is not True and hints.get("destructiveHint") is not False
