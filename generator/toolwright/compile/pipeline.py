"""The compiler: one pure function from a manifest's files to the files of its package.

    source.load → validate → resolve → rules.check → lower → codegen.make_artifacts

Every verb is this function with an ending of its own: `check` looks at the diagnostics alone, `generate` takes the
artifacts, too. It reads no clock, no disk and no environment, but for the files that the reader gives and toolwright's
own templates and runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from toolwright import ir
from toolwright.compile import lower, overlays, rules, source, validate
from toolwright.compile.resolve import Resolved, resolve
from toolwright.diagnostics import Diagnostic, Place, has_errors

if TYPE_CHECKING:
    from toolwright.codegen.pages.artifacts import Artifact
    from toolwright.codegen.pages.primitive_code import PackageCode
    from toolwright.compile.source import Document, Reader


class Steps:
    """The steps that take each tool by itself. A subclass may do them elsewhere, or know their results from before."""

    def to_check(self, resolved: Resolved) -> Resolved:
        """The manifest with those of its tools that have to be checked by themselves: here all."""
        return resolved

    def begin_models(self, manifest: ir.Manifest) -> Callable[[], PackageCode]:
        """Begin to make the models of a manifest; what is given waits for them."""
        from toolwright.codegen.pages import modules

        return lambda: modules.make_all(manifest)


@dataclass(frozen=True)
class Result:
    """What came of a manifest. `manifest` is None where an error stopped the compiler.

    `is_clean` says that there is no diagnostic that has to do with a single tool.
    """

    manifest: ir.Manifest | None
    diagnostics: tuple[Diagnostic, ...]
    documents: Mapping[str, Document]
    is_clean: bool = False
    steps: Steps = field(default_factory=Steps)

    @cached_property
    def artifacts(self) -> tuple[Artifact, ...]:
        """All files of the package, made when they are first asked for; none of a manifest that is wrong."""
        return () if self.manifest is None else generate(self.manifest, self.steps)


def compile_manifest(
    entry: str,
    reader: Reader,
    shown: str | None = None,
    command: str | None = None,
    steps: Steps | None = None,
    forgiven: Collection[str] = (),
) -> Result:
    """Compile the manifest at `entry`.

    Args:
        entry: Its path, as diagnostics show it.
        reader: Reads it and what it includes.
        shown: Its path as headers of generated files show it; by default the same.
        command: What generates its package, as headers show it.
        steps: How what concerns single tools is done; by default all of it, here and now.
        forgiven: Codes of errors in what a manifest means that do not stop the compiler.
    """
    steps = steps or Steps()
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
        return Result(None, (*diagnostics, *validate.in_order(bundle, about)), bundle.documents)
    if has_errors(wrong):
        wrong += validate.schemas(bundle)
        return Result(None, (*diagnostics, *validate.in_order(bundle, wrong)), bundle.documents)
    resolved = resolve(bundle)
    part = steps.to_check(resolved)
    right = {tool.place for tool in resolved.tools} - {tool.place for tool in part.tools}
    wrong += validate.schemas(bundle, right)
    overlaid = {tool.place: tool.patches for tool in resolved.tools if tool.patches}
    wrong += overlays.leading(overlaid, validate.patched(resolved, right))
    diagnostics += validate.in_order(bundle, wrong)
    if has_errors(diagnostics):
        return Result(None, tuple(diagnostics), bundle.documents)
    judged = overlays.leading(overlaid, rules.check(resolved, part))
    diagnostics = rules.suppressed(resolved, [*diagnostics, *judged])
    if has_errors(diagnostic for diagnostic in diagnostics if diagnostic.code not in forgiven):
        return Result(None, tuple(diagnostics), bundle.documents)
    manifest = lower.lower(resolved, shown or entry)
    manifest = replace(manifest, command=command or f"toolwright generate {manifest.source}")
    return Result(manifest, tuple(diagnostics), bundle.documents, not diagnostics, steps)


def generate(manifest: ir.Manifest, steps: Steps | None = None) -> tuple[Artifact, ...]:
    """All files of the package of a checked manifest, in a fixed order."""
    from toolwright.codegen.pages import artifacts

    return artifacts.make_artifacts(manifest, (steps or Steps()).begin_models(manifest))
