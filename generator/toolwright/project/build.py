"""One manifest from file to files: check it, compile it, and say what has to change on disk.

Takes a manifest's path and where its package goes; gives what was found in it and the changes to its files. It writes
nothing: `workspace.apply` does.
"""

from __future__ import annotations

import codecs
import json
import posixpath
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolwright import naming
from toolwright.diagnostics import Diagnostic, Place
from toolwright.project import workspace

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.compile.pipeline import Checked
    from toolwright.compile.source import Document
    from toolwright.incremental.worker import Helper
    from toolwright.project.handlers import Findings, Handwritten
    from toolwright.project.lock import Lock

OUTPUT = "generated"
"""The output folder where nothing says another."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where packages go, and where the modules of their handlers are.

    `told` says that the project names the folder, so that a command need not.
    """

    folder: Path
    told: bool = False
    handlers: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """What a command must say to mean this folder."""
        return "" if self.told or self.folder.name == OUTPUT else f" -o {shlex.quote(self.folder.name)}"


@dataclass(frozen=True, slots=True)
class Built:
    """What came of one manifest. `changes` is None where there are none to make: it is wrong, or all is up to date."""

    package: str | None = None
    changes: workspace.Changes | None = None
    requirements: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    documents: Mapping[str, Document] = field(default_factory=dict)
    failed: bool = False
    handlers: str | None = None
    fit: Fit | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """The handwritten class of a manifest: where it is, and what does not fit."""

    file: Path
    written: Handwritten
    findings: Findings
    encoding: str = "utf-8"


def build(
    path: str,
    target: Target,
    known: Lock,
    *,
    trust: bool,
    force: bool = False,
    project: Container[str] | None = None,
) -> Built:
    """Compile the manifest at `path` for a target.

    Args:
        path: The manifest, as diagnostics show it.
        target: Where its package goes.
        known: The lock of the target's folder.
        trust: Take the lock's word where it says that nothing changed, and look no further.
        force: Overwrite generated files that were edited by hand.
        project: All manifests of the project, as the lock has them, where they are all compiled.

    Raises:
        OSError: The target's folder cannot be read.
    """
    name = workspace.relative(path, target.folder)
    disk = workspace.Disk()
    if trust and workspace.untouched(disk, target.folder, known, name, target.option):
        return Built()

    from toolwright.incremental import worker

    second = worker.Helper() if worker.worthwhile() else None
    try:
        return _built(path, target, known, disk.afresh(), second, trust=trust, force=force, project=project)
    finally:
        if second is not None:
            second.stop()


def _built(
    path: str,
    target: Target,
    known: Lock,
    disk: workspace.Disk,
    second: Helper | None,
    *,
    trust: bool,
    force: bool,
    project: Container[str] | None,
) -> Built:
    from toolwright.compile import pipeline

    name = workspace.relative(path, target.folder)
    shown = workspace.told(path, target.folder)
    before = known.manifests.get(name) if trust else None
    checked = pipeline.check(path, disk, shown, f"toolwright generate {shlex.quote(shown)}{target.option}", before)
    result = Built(diagnostics=checked.diagnostics, documents=checked.documents, failed=checked.manifest is None)
    if checked.manifest is None:
        return result
    made = pipeline.digests(checked.manifest, checked)
    if trust and workspace.up_to_date(target.folder, known, name, made.hash):
        return result
    if not checked.diagnostics:
        made = replace(made, inputs=workspace.read_inputs(disk, target.folder, target.option))
    tree = workspace.Tree(target.folder)
    package = workspace.generated(tree, known, name, checked.manifest.package)
    artifacts = pipeline.generate(checked.manifest, made, package, second)
    at = package_at(path, checked)
    return replace(
        result,
        handlers=checked.manifest.handlers if "server" in checked.manifest.emit else None,
        fit=fit(checked.manifest, target.handlers, package.text("manifest.json")),
        package=workspace.shown(target.folder, checked.manifest.package),
        changes=workspace.compare(tree, known, name, made, artifacts, force=force, at=at, project=project),
        requirements=pipeline.requirements(checked.manifest),
    )


def package_at(path: str, checked: Checked) -> Place:
    """Where the package of the manifest at `path` gets its name."""
    from toolwright.compile import resolve

    entry = posixpath.normpath(path)
    return resolve.package_place(entry, checked.documents[entry].value)


def fit(manifest: ir.Manifest, folders: Sequence[str], document: str | None = None) -> Fit | None:
    """How the handwritten class of a manifest fits; None where none is named, or its module is not there in UTF-8.

    Args:
        manifest: The lowered manifest.
        folders: Where its module is looked for.
        document: The package's `manifest.json` as it was generated before.
    """
    if manifest.handlers is None or "server" not in manifest.emit:
        return None
    from toolwright.codegen import surface
    from toolwright.compile import source
    from toolwright.project import handlers as handwritten

    module, _, name = manifest.handlers.partition(":")
    file = workspace.find_module(module, folders)
    if file is None:
        return None
    written = handwritten.Handwritten(file.as_posix(), "", name, naming.handlers_class(manifest.stem))
    try:
        data = file.read_bytes()
        encoding = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
        written = replace(written, text=data.decode(encoding))
    except OSError as error:
        return Fit(file, written, handwritten.Findings((source.unreadable(written.path, error),)))
    except UnicodeDecodeError:
        return None
    before = surface.asked_methods(json.loads(document)) if document is not None else {}
    return Fit(file, written, handwritten.compare(written, surface.handler_methods(manifest), before), encoding)
