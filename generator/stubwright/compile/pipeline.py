"""The compiler pipeline: a pure function from a manifest's files to its package's files.

    source.load → validate → resolve → rules.check → lower → targeting.check → codegen.make_artifacts

The `check` command prints the diagnostics; `generate` also writes the artifacts. No stage reads the clock or the
environment. All files except stubwright's templates are read through the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stubwright import ir
from stubwright.compile import lower, overlays, rules, source, validate
from stubwright.compile.audience import budgets, target_checks
from stubwright.compile.resolve import ResolvedBundle, resolve
from stubwright.compile.rules import lint
from stubwright.diagnostics import Diagnostic, Place, has_errors

if TYPE_CHECKING:
    from stubwright.codegen.pages.artifacts import Artifact
    from stubwright.codegen.pages.primitive_code import PackageCode
    from stubwright.compile.source import Bundle, Document, Reader


@dataclass(frozen=True)
class Result:
    """A compiled manifest and the diagnostics. `manifest` is None after an error."""

    manifest: ir.Manifest | None
    diagnostics: tuple[Diagnostic, ...]
    documents: Mapping[str, Document]
    is_clean: bool = False


@dataclass(frozen=True)
class UncheckedManifest:
    """A resolved manifest that has not been checked."""

    bundle: Bundle
    resolved: ResolvedBundle
    diagnostics: Sequence[Diagnostic]
    structural: Sequence[Diagnostic]

    def check(
        self,
        part: ResolvedBundle,
        shown: str,
        command: str | None = None,
        tolerated: Collection[str] = (),
        targets: Sequence[str] = (),
        *,
        errors_only: bool = False,
    ) -> Result:
        """Check and lower the manifest.

        Args:
                    part: The manifest with only the tools to check.
        shown: The manifest's path, as shown in generated file headers.
            command: The command that generates the package, for the headers.
            tolerated: Codes of semantic errors that do not stop the compiler.
            targets: Targets that replace the manifest's own.
            errors_only: Whether to skip slow checks that only warn.
        """
        bundle, resolved = self.bundle, self.resolved
        diagnostics, structural = [*self.diagnostics], [*self.structural]
        known_valid = {tool.place for tool in resolved.tools} - {tool.place for tool in part.tools}
        structural += validate.validate_schemas(bundle, known_valid)
        overlaid = {tool.place: tool.patches for tool in resolved.tools if tool.patches}
        overlaid |= {api.place: api.patches for api in resolved.apis if api.patches}
        structural += overlays.move_to_overlays(overlaid, validate.validate_patched(resolved, known_valid))
        diagnostics += validate.sort_diagnostics(bundle, structural)
        if has_errors(diagnostics):
            return Result(None, tuple(diagnostics), bundle.shown)
        semantic = overlays.move_to_overlays(overlaid, rules.check(resolved, part, errors_only=errors_only))
        diagnostics = lint.suppress(resolved, [*diagnostics, *semantic])
        if has_errors(diagnostic for diagnostic in diagnostics if diagnostic.code not in tolerated):
            return Result(None, tuple(diagnostics), bundle.shown)
        manifest = lower.lower(resolved, shown)
        manifest = replace(manifest, command=command or f"stubwright generate {manifest.source}")
        checked = frozenset(tool.name for tool in part.tools)
        findings = target_checks.check(manifest, bundle.entry, checked, targets)
        findings += budgets.check(manifest, bundle.entry, checked)
        audience_findings = lint.suppress(resolved, [*overlays.move_to_overlays(overlaid, findings)])
        diagnostics += audience_findings
        if has_errors(diagnostic for diagnostic in audience_findings if diagnostic.code not in tolerated):
            return Result(None, tuple(diagnostics), bundle.shown)
        return Result(manifest, tuple(diagnostics), bundle.shown, not diagnostics)


def compile_manifest(
    entry: str,
    reader: Reader,
    shown: str | None = None,
    command: str | None = None,
    tolerated: Collection[str] = (),
    targets: Sequence[str] = (),
    *,
    errors_only: bool = False,
) -> Result:
    """Compile the manifest at `entry`.

    Args:
        entry: The manifest's path, as shown in diagnostics.
        reader: Reads the manifest and its includes.
        shown: The manifest's path, as shown in generated file headers. By default, `entry`.
        command: The command that generates the package, for the headers.
        tolerated: Codes of semantic errors that do not stop the compiler.
        targets: Targets that replace the manifest's own.
        errors_only: Whether to skip slow checks that only warn.
    """
    manifest = read(entry, reader)
    if isinstance(manifest, Result):
        return manifest
    return manifest.check(manifest.resolved, shown or entry, command, tolerated, targets, errors_only=errors_only)


def read(entry: str, reader: Reader, emit: Sequence[str] = ()) -> UncheckedManifest | Result:
    """Read and resolve the manifest at `entry`. On failure, return a result with the errors.

    Args:
        entry: The manifest's path, as shown in diagnostics.
        reader: Reads the manifest and its includes.
        emit: The parts to generate. By default, the manifest's `emit`.
    """
    bundle, diagnostics = source.load(entry, reader)
    if bundle is None:
        return Result(None, tuple(diagnostics), {})
    structural = list(validate.validate(bundle))
    if has_errors(diagnostics):
        include_errors = [
            diagnostic
            for diagnostic in structural
            if isinstance(diagnostic.at, Place) and diagnostic.at.pointer[:1] == ("include",)
        ]
        return Result(None, (*diagnostics, *validate.sort_diagnostics(bundle, include_errors)), bundle.shown)
    if has_errors(structural):
        structural += validate.validate_schemas(bundle)
        return Result(None, (*diagnostics, *validate.sort_diagnostics(bundle, structural)), bundle.shown)
    if emit:
        own = bundle.documents[bundle.entry]
        chosen = replace(own, value={**own.value, "emit": [*emit]})
        bundle = replace(bundle, documents={**bundle.documents, bundle.entry: chosen})
    return UncheckedManifest(bundle, resolve(bundle), diagnostics, structural)


def generate(manifest: ir.Manifest, models: Callable[[], PackageCode] | None = None) -> tuple[Artifact, ...]:
    """Return all files of a checked manifest, in a fixed order.

    Args:
        manifest: The manifest, from `check`.
        models: Waits for models that another process is generating. By default, this process generates them.
    """
    files: tuple[Artifact, ...] = ()
    if manifest.has_package:
        from stubwright.codegen.pages import artifacts, modules

        files = artifacts.make_artifacts(manifest, models or (lambda: modules.make_all(manifest)))
    if "typescript" in manifest.emit:
        from stubwright.codegen.typescript import module

        files += module.make_artifacts(manifest)
    return files
