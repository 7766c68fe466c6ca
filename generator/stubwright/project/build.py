"""Builds one manifest: checks it, compiles it, and computes the changes to files on disk.

Writes no files; `tree.apply` does.
"""

from __future__ import annotations

import codecs
import json
import posixpath
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stubwright import naming
from stubwright.diagnostics import Diagnostic, Place
from stubwright.project import freshness
from stubwright.project.files import disk, layout, lock, tree, user_cache
from stubwright.project.saved_findings import SavedFindings, Text

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.compile.pipeline import Result
    from stubwright.incremental.worker import Workers
    from stubwright.project.files.lock import Lock
    from stubwright.project.handwritten.handlers import Findings, HandwrittenClass

OUTPUT = "generated"
"""The default output folder."""


@dataclass(frozen=True, slots=True)
class Target:
    """The destination for packages.

    Attributes:
        folder: The folder for packages.
        is_configured: True if the project configures the folder, so that commands can omit it.
        handlers: The folders with handwritten modules.
        is_vendored: True if packages use a vendored runtime.
        emit: The parts to generate, overriding the manifest's `emit`; empty to use the manifest's.
    """

    folder: Path
    is_configured: bool = False
    handlers: tuple[str, ...] = ()
    is_vendored: bool = False
    emit: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """The command-line options that select this folder and these parts; empty for the defaults."""
        name = layout.name(self.folder)
        folder = "" if self.is_configured or name == OUTPUT else f" -o {shlex.quote(name)}"
        return folder + "".join(f" --emit {part}" for part in self.emit)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of building one manifest.

    Attributes:
        package: The path to the generated package.
        changes: The changes to files; None if the manifest is invalid or up to date.
        requirements: The package's requirements, if they have changed.
        diagnostics: Errors and warnings about the manifest.
        documents: The documents that the diagnostics quote.
        failed: True if the manifest is invalid.
        handlers: `module:name` of the handwritten class, if any.
        fit: The problems with the handwritten class; None if it was not checked.
        keep: Saves reusable results for the next run; called after the changes are applied.
    """

    package: str | None = None
    changes: tree.Changes | None = None
    requirements: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    documents: Mapping[str, Text] = field(default_factory=dict)
    failed: bool = False
    handlers: str | None = None
    fit: HandlerReport | None = None
    keep: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class HandlerReport:
    """A manifest's handwritten class, with its file and its problems."""

    file: Path
    written: HandwrittenClass
    findings: Findings
    encoding: str = "utf-8"

    @property
    def documents(self) -> Mapping[str, Text]:
        """The file that the diagnostics quote, by name."""
        from stubwright.compile.source import Document

        written = self.written
        return {written.path: Document(written.path, written.text, None)} if self.findings.diagnostics else {}


def build(
    path: str,
    target: Target,
    known: Lock,
    *,
    trust: bool,
    force: bool = False,
    writes: bool = True,
    project: Container[str] | None = None,
) -> BuildResult:
    """Compile the manifest at `path` for a target.

    Args:
        path: The manifest's path, as diagnostics show it.
        target: The destination for the package.
        known: The lock for the target folder.
        trust: Reuse the user's cached results from earlier runs.
        force: Overwrite generated files that were edited by hand.
        writes: True if the changes will be applied, so that the models must be tested.
        project: All of the project's manifests, with the names used in the lock, if all are compiled.

    Raises:
        OSError: The target's folder cannot be read.
    """
    reader = disk.Disk()
    if trust and (note := freshness.find_untouched(reader, target.folder, known, path, target.option)) is not None:
        texts = note.findings.read(reader)
        if texts is not None:
            return BuildResult(diagnostics=note.findings.diagnostics, documents=texts)

    from stubwright.incremental import worker

    with worker.run_workers() as workers:
        reader = reader.share_cache()
        return _build(path, target, known, reader, workers, trust=trust, force=force, writes=writes, project=project)


def _build(
    path: str,
    target: Target,
    known: Lock,
    reader: disk.Disk,
    workers: Workers | None,
    *,
    trust: bool,
    force: bool,
    writes: bool,
    project: Container[str] | None,
) -> BuildResult:
    from stubwright.compile import pipeline
    from stubwright.incremental import cache, digests, reuse

    name = layout.make_relative(path, target.folder)
    shown = layout.quote_manifest(path, target.folder)
    command = f"stubwright generate {shlex.quote(shown)}{target.option}"
    cache_name = user_cache.name(target.folder, name, "units")
    before = cache.load(user_cache.read(cache_name)) if trust else cache.Cache()
    manifest = pipeline.read(path, reader, target.emit)
    if isinstance(manifest, pipeline.Result):
        return BuildResult(diagnostics=manifest.diagnostics, documents=manifest.documents, failed=True)
    reusable = reuse.Reuse.compare(
        manifest.resolved, before, (digests.compute_generator_digest(), shown, command), workers
    )
    compiled = manifest.check(reusable.to_check, shown, command)
    result = BuildResult(
        diagnostics=compiled.diagnostics, documents=compiled.documents, failed=compiled.manifest is None
    )
    if compiled.manifest is None:
        return result
    begun = reusable.begin(compiled.manifest)
    entry = lock.Entry(reusable.compute_digest(compiled.manifest))
    package_name = compiled.manifest.package
    output = tree.Tree(target.folder)
    package = tree.find_generated(output, known, name, compiled.manifest.package)
    # A package from 0.1 contains the runtime, so its project does not require the runtime yet.
    is_new = package.read_text("manifest.json") is None or package.read_text("_runtime/__init__.py") is not None
    is_new = is_new and compiled.manifest.has_package
    at = locate_package(path, compiled)
    artifacts = pipeline.generate(compiled.manifest, lambda: begun().made)
    changes = tree.compare(output, known, name, entry, artifacts, force=force, at=at, project=project)
    is_settled = not changes.changes and not changes.diagnostics and changes.lock == known
    proof = begun().prove(artifacts) if writes and changes.changes and not changes.refused else None
    if proof is not None and proof.diagnostics:
        return replace(result, diagnostics=(*result.diagnostics, *proof.diagnostics), failed=True)

    def keep() -> None:
        user_cache.write(cache_name, cache.dump(begun().cache(proof, is_clean=compiled.is_clean)))
        located = SavedFindings.locate(path, package_name, compiled.diagnostics, compiled.documents, reader)
        if located is not None and not changes.diagnostics:
            note = freshness.make_note(reader, target.folder, target.option, changes.lock.manifests[name], located)
            freshness.remember(target.folder, name, note)

    if trust and is_settled:
        return replace(result, keep=keep)
    return replace(
        result,
        handlers=compiled.manifest.handlers if "server" in compiled.manifest.emit else None,
        fit=fit(compiled.manifest, target.handlers, path, package.read_text("manifest.json")),
        package=layout.show_path(target.folder, compiled.manifest.output),
        changes=changes,
        requirements=list_requirements(is_vendored=target.is_vendored) if is_new else (),
        keep=keep,
    )


def compile_alone(path: str, target: Target, reader: disk.Disk, shown: str) -> Result:
    """Compile a manifest for an output that is not a package.

    Tools are not rechecked if the user's last `generate` found no errors and its inputs are unchanged.

    Args:
        path: The manifest's path, as diagnostics show it.
        target: The destination for the package.
        reader: Reads the manifest.
        shown: The manifest's path, as headers show it.
    """
    from stubwright.compile import pipeline

    name = layout.make_relative(path, target.folder)
    is_right = freshness.recall(reader, target.folder, name, target.option, lambda _: False) is not None
    manifest = pipeline.read(path, reader)
    if isinstance(manifest, pipeline.Result):
        return manifest
    resolved = manifest.resolved
    return manifest.check(replace(resolved, tools=(), outlines={}) if is_right else resolved, shown)


def list_requirements(*, is_vendored: bool) -> tuple[str, ...]:
    """Return a package's requirements: the runtime, or the runtime's own requirements if it is vendored."""
    from stubwright.codegen.pages import artifacts
    from stubwright.project import vendoring

    return vendoring.list_requirements() if is_vendored else (artifacts.RUNTIME,)


_FORGED = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Exceptions that can occur when reading a `manifest.json` of unknown origin."""


def locate_package(path: str, compiled: Result) -> Place:
    """Return the location of the key that sets a manifest's package name."""
    from stubwright.compile import resolve

    entry = posixpath.normpath(path)
    return resolve.locate_package(entry, compiled.documents[entry].value)


def fit(manifest: ir.Manifest, folders: Sequence[str], path: str, document: str | None = None) -> HandlerReport | None:
    """Compare a manifest's handwritten class with the generated interface.

    Args:
        manifest: The lowered manifest.
        folders: The folders to search for the module.
        path: The manifest's path, as diagnostics show it.
        document: The previously generated `manifest.json`.

    Returns:
        The problems; None if the manifest sets no class, or its module is installed or unreadable.
    """
    if manifest.handlers is None or "server" not in manifest.emit:
        return None
    from stubwright.codegen import surface
    from stubwright.codegen.handler_methods import list_required_methods
    from stubwright.codegen.pages import renames
    from stubwright.compile import source
    from stubwright.project.handwritten import handlers as handwritten

    module, _, name = manifest.handlers.partition(":")
    interface = naming.name_handlers_class(manifest.stem)
    at = Place(posixpath.normpath(path), ("python", "handlers"))
    file = disk.find_module(module, folders)
    if file is None:
        if disk.is_importable(module, folders):
            return None
        where = Path(folders[0] if folders else ".", *module.split(".")).with_suffix(".py")
        absent = Diagnostic(
            "SW424",
            f"the module `{module}` was not found in {' or '.join(f'`{folder}`' for folder in folders)}",
            at,
            f"add `class {name}({interface}): …` to `{where.as_posix()}`, "
            "or set `handlers` in `[tool.stubwright]` to the module's folder",
        )
        written = handwritten.HandwrittenClass(where.as_posix(), "", name, interface, manifest.package, at)
        return HandlerReport(where, written, handwritten.Findings((absent,), is_found=False))
    written = handwritten.HandwrittenClass(file.as_posix(), "", name, interface, manifest.package, at)
    try:
        data = file.read_bytes()
        encoding = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
        written = replace(written, text=data.decode(encoding))
    except OSError as error:
        return HandlerReport(file, written, handwritten.Findings((source.report_unreadable(written.path, error),)))
    except UnicodeDecodeError:
        return None
    try:
        before = json.loads(document) if document is not None else {}
        asked: dict[str, str | None] = {method.name: method.result for method in list_required_methods(before)}
        renamed = renames.match_renamed_methods(before, manifest.document)
    except _FORGED:
        asked, renamed = {}, {}
    findings = handwritten.compare(written, surface.list_handler_methods(manifest), asked, renamed)
    return HandlerReport(file, written, findings, encoding)
