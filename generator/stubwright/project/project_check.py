"""Checks a manifest together with its project: its handwritten class, version and requirements."""

from __future__ import annotations

import glob
import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright.diagnostics import Diagnostic
from stubwright.project import build, freshness
from stubwright.project.files import disk, layout, lock
from stubwright.project.saved_findings import SavedFindings, Text

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.project.config import Project

_NOTE: Final = "check"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A manifest's diagnostics and its package, which is None if an error stopped the compiler."""

    package: str | None
    diagnostics: tuple[Diagnostic, ...]
    documents: Mapping[str, Text]


def check(path: str, target: build.Target, project: Project | None, audience: Sequence[str]) -> CheckResult:
    """Check a manifest or return the cached result if all inputs are unchanged since the user's last check.

    Args:
        path: The manifest's path, as diagnostics show it.
        target: The destination for the package.
        project: The manifest's project, if that project lists its manifests.
        audience: Targets that override the manifest's own.
    """
    option = repr((target.option, target.handlers, target.is_vendored, project, tuple(audience)))
    reader = disk.Disk()
    note = freshness.find_note(reader, target.folder, path, option, _NOTE)
    if note is not None and (texts := note.findings.read(reader)) is not None:
        return CheckResult(note.findings.package, note.findings.diagnostics, texts)

    from stubwright.compile import pipeline

    reader = reader.share_cache()
    checked = pipeline.compile_manifest(path, reader, targets=audience)
    if checked.manifest is None:
        return CheckResult(None, checked.diagnostics, checked.documents)
    package = checked.manifest.package
    fit = build.fit(checked.manifest, target.handlers, path, _read_generated(path, package, target.folder, reader))
    diagnostics = [*checked.diagnostics]
    documents: dict[str, Text] = {**checked.documents}
    if fit is not None:
        diagnostics += fit.findings.diagnostics
        documents |= fit.documents
    if project is not None:
        diagnostics += _compare_with_project(path, checked.manifest, checked.documents, target, project, reader)
    result = CheckResult(package, tuple(diagnostics), documents)
    is_known = _record_handlers(checked.manifest, target.handlers, reader)
    findings = SavedFindings.locate(path, package, diagnostics, documents, reader) if is_known else None
    if findings is not None:
        made = freshness.make_note(reader, target.folder, option, lock.Entry(""), findings)
        freshness.remember(target.folder, layout.make_relative(path, target.folder), made, _NOTE)
    return result


def _compare_with_project(
    path: str,
    manifest: ir.Manifest,
    documents: Mapping[str, Text],
    target: build.Target,
    project: Project,
    reader: disk.Disk,
) -> list[Diagnostic]:
    from stubwright.project import config, versions

    for other in project.manifests:  # which affect the version comparison
        _record_file(other, reader)
    differing = versions.find_difference(project, path, manifest, documents[posixpath.normpath(path)].value)
    missing = config.find_missing(project, build.list_requirements(is_vendored=target.is_vendored))
    return [
        *([] if differing is None else [differing]),
        *(
            Diagnostic(
                "SW411",
                f"the server generated from `{path}` requires `{absent}`",
                project.listed,
                "add it to `dependencies` under `[project]`",
            )
            for absent in missing
        ),
    ]


def _read_generated(path: str, package: str, folder: Path, reader: disk.Disk) -> str | None:
    from stubwright.project.files import journal, tree

    _record_file((folder / lock.NAME).as_posix(), reader)
    _record_file((folder / package / "manifest.json").as_posix(), reader)
    with suppress(OSError, lock.LockError):
        known_lock = journal.read_lock(folder)
        return tree.find_generated(
            tree.Tree(folder), known_lock, layout.make_relative(path, folder), package
        ).read_text("manifest.json")
    return None


def _record_handlers(manifest: ir.Manifest, folders: Sequence[str], reader: disk.Disk) -> bool:
    """Record the handlers module as an input. Return False if the module might be installed elsewhere."""
    if manifest.handlers is None or "server" not in manifest.emit:
        return True
    module = manifest.handlers.partition(":")[0]
    for file in disk.list_module_files(module, folders):
        _record_file(file.as_posix(), reader)
    return disk.find_module(module, folders) is not None


def _record_file(path: str, reader: disk.Disk) -> None:
    folder, name = posixpath.split(path)
    with suppress(OSError):
        reader.glob(folder or ".", glob.escape(name))
        reader.read(path)
