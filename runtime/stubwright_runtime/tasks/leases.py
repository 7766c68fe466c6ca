"""Lease durations for running tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..values.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..package import Tool

LEASE: Final = "10s"
"""The default of the manifest's `task.lease`."""


def find_duration(tool: Tool | None) -> float:
    """Return the lease duration for a tool's tasks, in seconds."""
    settings: Mapping[str, Any] = {} if tool is None else tool.extension.get("task") or {}
    return parse_duration(settings.get("lease", LEASE))
