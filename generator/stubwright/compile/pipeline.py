"""The compiler: one pure function from a manifest's files to the files of its package.

    source.load → validate → resolve → rules.check → lower → targeting.check → codegen.make_artifacts

Commands differ in the last step: `check` only reads the diagnostics, `generate` also writes the artifacts. The function
does not use the clock or the environment, and from the disk only stubwright's own templates and the files that the
reader returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stubwright import ir
from stubwright.compile import lower, overlays, rules, source, validate
from stubwright.compile.audience import budgets, targeting
from stubwright.compile.resolve import ResolvedBundle, resolve
from stubwright.diagnostics import Diagnostic, Place, has_errors

if TYPE_CHECKING:
    from stubwright.codegen.pages.artifacts import Artifact
    from stubwright.codegen.pages.primitive_code import PackageCode
    from stubwright.compile.source import Bundle, Document, Reader


@dataclass(frozen=True)
class Result:
    """The result of compiling a manifest; `manifest` is None if an error stopped the compiler.

    `is_clean` is True if no diagnostic is about a single tool.
    """

    manifest: ir.Manifest | None
    diagnostics: tuple[Diagnostic, ...]
    documents: Mapping[str, Document]
    is_clean: bool = False


@dataclass(frozen=True)
class UncheckedManifest:
    """A resolved manifest before its checks, as `read` returns it."""

    bundle: Bundle
    resolved: ResolvedBundle
    diagnostics: Sequence[Diagnostic]
    wrong: Sequence[Diagnostic]

    def check(
        self,
        part: ResolvedBundle,
        shown: str,
        command: str | None = None,
        forgiven: Collection[str] = (),
        targets: Sequence[str] = (),
        *,
        errors_only: bool = False,
    ) -> Result:
        """Check the manifest, and lower it.

        Args:
            part: The resolved manifest with only the tools that need their own checks.
            shown: Its path in the headers of generated files.
            command: The command that generates its package, for the headers.
            forgiven: Codes of semantic errors that do not stop the compiler.
            targets: Targets that replace the manifest's own.
            errors_only: Whether warnings are discarded; slow checks that only warn are then skipped.
        """
        bundle, resolved = self.bundle, self.resolved
        diagnostics, wrong = [*self.diagnostics], [*self.wrong]
        right = {tool.place for tool in resolved.tools} - {tool.place for tool in part.tools}
        wrong += validate.validate_schemas(bundle, right)
        overlaid = {tool.place: tool.patches for tool in resolved.tools if tool.patches}
        overlaid |= {api.place: api.patches for api in resolved.apis if api.patches}
        wrong += overlays.move_to_overlays(overlaid, validate.validate_patched(resolved, right))
        diagnostics += validate.sort_diagnostics(bundle, wrong)
        if has_errors(diagnostics):
            return Result(None, tuple(diagnostics), bundle.shown)
        judged = overlays.move_to_overlays(overlaid, rules.check(resolved, part, errors_only=errors_only))
        diagnostics = rules.suppress(resolved, [*diagnostics, *judged])
        if has_errors(diagnostic for diagnostic in diagnostics if diagnostic.code not in forgiven):
            return Result(None, tuple(diagnostics), bundle.shown)
        manifest = lower.lower(resolved, shown)
        manifest = replace(manifest, command=command or f"stubwright generate {manifest.source}")
        looked_at = frozenset(tool.name for tool in part.tools)
        about_audience = targeting.check(manifest, bundle.entry, looked_at, targets)
        about_audience += budgets.check(manifest, bundle.entry, looked_at)
        unfit = rules.suppress(resolved, [*overlays.move_to_overlays(overlaid, about_audience)])
        diagnostics += unfit
        if has_errors(diagnostic for diagnostic in unfit if diagnostic.code not in forgiven):
            return Result(None, tuple(diagnostics), bundle.shown)
        return Result(manifest, tuple(diagnostics), bundle.shown, not diagnostics)


def compile_manifest(
    entry: str,
    reader: Reader,
    shown: str | None = None,
    command: str | None = None,
    forgiven: Collection[str] = (),
    targets: Sequence[str] = (),
    *,
    errors_only: bool = False,
) -> Result:
    """Compile the manifest at `entry`.

    Args:
        entry: Its path, as diagnostics show it.
        reader: Reads the manifest and its includes.
        shown: Its path in the headers of generated files; by default the same.
        command: The command that generates its package, for the headers.
        forgiven: Codes of semantic errors that do not stop the compiler.
        targets: Targets that replace the manifest's own.
        errors_only: Whether warnings are discarded; slow checks that only warn are then skipped.
    """
    manifest = read(entry, reader)
    if isinstance(manifest, Result):
        return manifest
    return manifest.check(manifest.resolved, shown or entry, command, forgiven, targets, errors_only=errors_only)


def read(entry: str, reader: Reader, emit: Sequence[str] = ()) -> UncheckedManifest | Result:
    """Read the manifest at `entry` and resolve it; if that fails, return a result without a manifest.

    Args:
        entry: Its path, as diagnostics show it.
        reader: Reads the manifest and its includes.
        emit: The parts to generate, instead of the manifest's own.
    """
    bundle, diagnostics = source.load(entry, reader)
    if bundle is None:
        return Result(None, tuple(diagnostics), {})
    wrong = list(validate.validate(bundle))
    if has_errors(diagnostics):
        about = [
            diagnostic
            for diagnostic in wrong
            if isinstance(diagnostic.at, Place) and diagnostic.at.pointer[:1] == ("include",)
        ]
        return Result(None, (*diagnostics, *validate.sort_diagnostics(bundle, about)), bundle.shown)
    if has_errors(wrong):
        wrong += validate.validate_schemas(bundle)
        return Result(None, (*diagnostics, *validate.sort_diagnostics(bundle, wrong)), bundle.shown)
    if emit:
        own = bundle.documents[bundle.entry]
        chosen = replace(own, value={**own.value, "emit": [*emit]})
        bundle = replace(bundle, documents={**bundle.documents, bundle.entry: chosen})
    return UncheckedManifest(bundle, resolve(bundle), diagnostics, wrong)


def generate(manifest: ir.Manifest, models: Callable[[], PackageCode] | None = None) -> tuple[Artifact, ...]:
    """Return all files of a checked manifest, in a fixed order.

    Args:
        manifest: The manifest.
        models: Waits for models that were started earlier; by default they are generated now.
    """
    made: tuple[Artifact, ...] = ()
    if manifest.has_package:
        from stubwright.codegen.pages import artifacts, modules

        made = artifacts.make_artifacts(manifest, models or (lambda: modules.make_all(manifest)))
    if "typescript" in manifest.emit:
        from stubwright.codegen.typescript import module

        made += module.make_artifacts(manifest)
    return made
