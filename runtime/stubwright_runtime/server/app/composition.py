"""Selects a server's features and imports only their modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..methods.tools import Calls
from .optional_features import make_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...package import Package
    from ..core.feature import Feature


def list_features(package: Package) -> tuple[Feature, ...]:
    """Return the features of a package's server, in the order in which errors list missing handler methods."""
    declared: Mapping[str, Any] = package.manifest["server"].get("capabilities") or {}
    features: list[Feature] = []
    if package.tools or declared.get("tools") is True:
        features.append(Calls(package, make_steps))
    if package.resources or package.templates or package.keeps_results or declared.get("resources") is True:
        from ..methods.resources import Resources

        features.append(Resources(package))
    if package.manifest.get("skills"):
        from ..methods.skills import Skills

        features.append(Skills(package))
    if package.prompts or declared.get("prompts") is True:
        from ..methods.prompts import Prompts

        features.append(Prompts(package))
    if _completes(package) or declared.get("completions") is True:
        from ..methods.completion import Completions

        features.append(Completions(package))
    return tuple(features)


def _completes(package: Package) -> bool:
    return any(
        extension.get("complete")
        for section in ("resourceTemplates", "prompts")
        for _, extension in package.list_entries(section).values()
    )
