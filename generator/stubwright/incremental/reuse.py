"""Runs the compiler's per-tool steps with a cache and worker processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from stubwright.codegen.pages.primitive_code import PackageCode
from stubwright.incremental import keys, proofs
from stubwright.incremental.cache import Cache

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.codegen.models.reserved_names import ReservedNames
    from stubwright.codegen.pages.artifacts import Artifact
    from stubwright.codegen.pages.primitive_code import PrimitiveCode
    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.diagnostics import Diagnostic
    from stubwright.incremental.keys import Keys
    from stubwright.incremental.worker import Job, Workers

BATCH = 24
"""The number of tools per process; another process is started only for two or more batches."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The models' diagnostics, and the digests of modules that need not be built again."""

    diagnostics: tuple[Diagnostic, ...]
    proven: frozenset[str]


@dataclass(frozen=True, slots=True)
class Models:
    """A manifest's models; `units` has all generated or reused code, keyed by the tool's digest."""

    reuse: Reuse
    manifest: ir.Manifest
    made: PackageCode
    units: Mapping[str, PrimitiveCode]
    digests: Mapping[str, str]

    def prove(self, artifacts: Sequence[Artifact]) -> Proof:
        """Test the models that are not yet proven, in other processes, from the package's files."""
        before = self.reuse.before.proven
        if not self.manifest.has_package:
            return Proof((), before)
        modules = proofs.list_modules(self.manifest, self.made, self.digests)
        todo = [module for module in modules if module.digest not in before]
        diagnostics = proofs.prove(self.manifest, todo, artifacts, self.reuse.workers)
        return Proof(tuple(diagnostics), frozenset(module.digest for module in modules))

    def cache(self, proof: Proof | None, *, is_clean: bool) -> Cache:
        """Return the cache for the next run.

        Args:
            proof: The models' test result, if they were tested.
            is_clean: True if no tool has a diagnostic.
        """
        clean = frozenset(self.reuse.keys.tools.values()) if is_clean else frozenset()
        proven = self.reuse.before.proven if proof is None else proof.proven
        return Cache(self.units, clean, self.reuse.keys.around, proven)


@dataclass(frozen=True, slots=True)
class Reuse:
    """The results of the last run that can be reused for a resolved manifest. Created by `compare`.

    `workers`, if any, generate the code that is not in the cache.
    """

    before: Cache
    keys: Keys
    workers: Workers | None
    to_check: ResolvedBundle
    """The manifest with only the tools that changed or had diagnostics in the last run."""

    @classmethod
    def compare(cls, resolved: ResolvedBundle, before: Cache, made_by: Sequence[str], workers: Workers | None) -> Reuse:
        """Compare a manifest with the last run's cache; `made_by` lists other inputs that affect every output."""
        now = keys.make_keys(resolved, made_by)
        if before.around != now.around:
            return cls(before, now, workers, resolved)
        dirty = tuple(tool for tool in resolved.tools if now.tools[tool.name] not in before.clean)
        outlines = {outline.place: outline for tool in dirty for _, outline in resolved.list_schemas(tool)}
        return cls(before, now, workers, replace(resolved, tools=dirty, outlines=outlines))

    def compute_digest(self, manifest: ir.Manifest) -> str:
        """Return a digest of all inputs that affect a manifest's artifacts."""
        return keys.digest_manifest(manifest, self.keys.tools)

    def begin(self, manifest: ir.Manifest) -> Callable[[], Models]:
        """Start generating the code that is not in the cache, and return a function that waits for the result."""
        if not manifest.has_package:
            nothing = Models(self, manifest, PackageCode({}, (), {}, {}), {}, {})
            return lambda: nothing
        from stubwright.codegen.models import reserved_names

        first = reserved_names.reserve(manifest)
        units: dict[str, PrimitiveCode] = {}
        begun = self._begin(manifest, first, units)  # runs while the compiler generates other files

        def make(taken: ReservedNames) -> Models:
            return begun() if taken is first else self._begin(manifest, taken, units)()

        @cache
        def make_models() -> Models:
            return reserved_names.resolve_collisions(first, make, lambda models: models.made.find_defined())[0]

        return make_models

    def _begin(
        self, manifest: ir.Manifest, taken: ReservedNames, units: dict[str, PrimitiveCode]
    ) -> Callable[[], Models]:
        """Start to generate the missing code without using reserved names. The code is added to `units`."""
        from stubwright.codegen.models import reserved_names
        from stubwright.codegen.pages import modules

        of_shared = reserved_names.reserve_of_shared(manifest, taken)
        now = {
            tool.name: keys.digest_unit(
                self.keys.tools[tool.name],
                of_shared | taken.list_under(tool.names.stem, reserved_names.reserve_of_tool(tool)),
            )
            for tool in manifest.tools
        }
        there = {**self.before.units, **units}
        todo = [tool for tool in manifest.tools if now[tool.name] not in there]
        batches = [todo[start : start + BATCH] for start in range(0, len(todo), BATCH)]
        rest = modules.select_arguments_of_rest(manifest, taken)
        _, modelled, shared, source, command, _ = rest
        jobs: list[Job] = [(modules.make_rest, rest)]
        homes = modules.find_homes_for(todo, shared, taken) if batches else {}
        jobs += [(modules.make, (batch, homes, source, command, taken)) for batch in batches]
        if self.workers is None or not (batches or modelled or shared):
            results = None
        else:
            results = self.workers.begin(jobs, len(batches))

        def make_models() -> Models:
            others, *batches_made = results() if results else [make(*arguments) for make, arguments in jobs]
            fresh = dict(
                zip((tool.name for tool in todo), (unit for batch in batches_made for unit in batch), strict=True)
            )
            units.update({now[tool.name]: fresh.get(tool.name) or there[now[tool.name]] for tool in manifest.tools})
            code = PackageCode({tool.name: units[now[tool.name]] for tool in manifest.tools}, *others)
            return Models(self, manifest, code, units, now)

        return make_models
