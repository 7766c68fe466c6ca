# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""A server keeps what its manifest promises, or does not start.

Takes a package; compares what the manifest declares with the features that the package has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..package import Package

KEEPERS: Final[Mapping[str, str]] = {
    "concurrency": "limits",
    "confirm": "confirmation",
    "maxResultBytes": "limits",
    "rateLimit": "rates",
    "redact": "redaction",
    "scopes": "scopes",
    "timeout": "limits",
}
"""The feature that keeps each part of a policy."""

_ALWAYS: Final = frozenset({"maxArgumentBytes", "onStateLoss", "sanitize", "trusted"})
"""What needs no feature: every server keeps it, or it is for clients, or about what other features keep."""


class Unserved(ValueError):
    """The manifest declares what this version does not serve, so that the server would leave open what it closes."""


def check(package: Package) -> None:
    """Let a server start.

    Raises:
        Unserved: It would leave open what its manifest closes, or show what nobody can call.
    """
    for feature, words in _declared(package):
        if feature not in package.features:
            raise Unserved(f"the manifest declares {words}, and the package has not what keeps it; generate it again")


def _declared(package: Package) -> Iterator[tuple[str, str]]:
    """The features that keep what the manifest declares, with its words."""
    manifest: Mapping[str, Any] = package.manifest
    if manifest.get("auth"):
        yield "auth", "`auth`"
    if manifest.get("handles"):
        yield "handles", "`handles`"
    if any(tool.extension.get("bind") for tool in package.tools.values()):
        yield "claims", "`bind`"
    if any(tool.task_support != "forbidden" for tool in package.tools.values()):
        yield "tasks", "`execution.taskSupport`"
    policies: list[Mapping[str, Any]] = [tool.policy for tool in package.tools.values()]
    policies += [
        extension.get("policy") or {}
        for section in ("resources", "resourceTemplates", "prompts")
        for _, extension in package.entries(section).values()
    ]
    for policy in policies:
        for key, value in policy.items():
            if value and key not in _ALWAYS and not key.startswith("x-"):
                yield KEEPERS.get(key, key), f"`policy.{key}`"
