"""Checks before startup that this runtime supports every feature of a manifest, which a newer compiler may have
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ...package import Package

POLICY: Final = frozenset(
    {
        "concurrency",
        "confirm",
        "maxArgumentBytes",
        "maxResultBytes",
        "onStateLoss",
        "once",
        "rateLimit",
        "redact",
        "sanitize",
        "scopes",
        "timeout",
        "trusted",
    }
)
"""The supported keys of policies."""

EXTENSION: Final = frozenset(
    {
        "aliases",
        "ask",
        "binary",
        "bind",
        "budget",
        "complete",
        "deprecated",
        "examples",
        "file",
        "handles",
        "http",
        "messages",
        "paginate",
        "policy",
        "pythonName",
        "task",
        "text",
    }
)
"""The supported keys under `stubwright` in tools, resources and prompts."""

BUDGET: Final = frozenset({"result"})
"""The supported keys of budgets at run time; the compiler checks the others."""

MANIFEST: Final = frozenset(
    {
        "apis",
        "audit",
        "auth",
        "budget",
        "bundled",
        "cache",
        "client",
        "exactFormats",
        "formats",
        "handles",
        "nulls",
        "pageSize",
        "policy",
        "prompts",
        "resourceTemplates",
        "resources",
        "server",
        "skills",
        "storage",
        "toolsets",
        "stubwright",
        "tools",
    }
)
"""The supported keys of `manifest.json`."""


class UnsupportedManifestError(ValueError):
    """The manifest declares a feature that this runtime does not support."""


def check(package: Package) -> None:
    """Check that this runtime supports every key of a package's manifest.

    Raises:
        UnsupportedManifestError: The manifest has an unknown key.
    """
    for words in _list_unknown(package):
        raise UnsupportedManifestError(
            f"the manifest of {package.name} declares `{words}`, which this version of stubwright-runtime does not"
            " support; install a newer release"
        )


def _list_unknown(package: Package) -> Iterator[str]:
    manifest: Mapping[str, Any] = package.manifest
    yield from _find_unknown(manifest, MANIFEST)
    yield from _find_unknown_settings(manifest)
    for section in ("tools", "resources", "resourceTemplates", "prompts"):
        for _, extension in package.list_entries(section).values():
            yield from _find_unknown(extension, EXTENSION)
            yield from _find_unknown_settings(extension)


def _find_unknown_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for key, known in (("policy", POLICY), ("budget", BUDGET)):
        yield from (f"{key}.{other}" for other in _find_unknown(settings.get(key) or {}, known))


def _find_unknown(declared: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    return (key for key, value in declared.items() if value and key not in known and not key.startswith("x-"))
