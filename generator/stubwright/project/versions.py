"""Compares a project's version with its server's version.

The comparison is skipped if a build tool computes the project's version, or if several manifests were not imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright import paths
from stubwright.compile.syntax import yamlwriter
from stubwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.ir import Json
    from stubwright.project.config import Project


_CODE: Final = "SW413"


def find_difference(project: Project, path: str, manifest: ir.Manifest, document: Json) -> Diagnostic | None:
    """Return the diagnostic for a server whose version differs from its project's; None if they match.

    Args:
        project: The project.
        path: The manifest's path, as diagnostics show it.
        manifest: The lowered manifest.
        document: The manifest's document, with the warnings that it ignores.
    """
    version = manifest.server.get("version")
    if project.version is None or not isinstance(version, str) or "server" not in manifest.emit:
        return None
    if _are_equal(version, project.version) or _CODE in _list_ignored(document) or not _is_the_only_one(path, project):
        return None
    message = f"the server's version is `{version}`, but `{project.file}` has `{project.version}`"
    fix = f"write `{project.version}` here, or change the version in `{project.file}`"
    return Diagnostic(_CODE, message, Place(paths.normalize(path), ("server", "version")), fix)


def _are_equal(first: str, second: str) -> bool:
    """Return whether two versions are equal as package versions: `1.0` and `1.0.0`, `2.0.0-rc.1` and `2.0rc1`."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(first) == Version(second)
    except InvalidVersion:
        return first == second


def _is_the_only_one(path: str, project: Project) -> bool:
    own = [paths.normalize(each) for each in project.manifests if not _is_imported(Path(each))]
    return own == [paths.normalize(path)]


def _is_imported(path: Path) -> bool:
    try:
        return yamlwriter.is_imported(path.read_text("utf-8", "replace"))
    except OSError:  # a separate check reports it
        return False


def _list_ignored(document: Json) -> Sequence[Json]:
    lint = document.get("lint") if isinstance(document, dict) else None
    codes = lint.get("ignore") if isinstance(lint, dict) else None
    return codes if isinstance(codes, list) else ()
