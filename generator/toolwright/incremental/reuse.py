"""The compiler's steps for single tools, as a cache and more than one process have them.

Takes what the last run kept; gives the compiler only those tools to check and to make that have changed, and at the end
what the next run can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from toolwright.codegen.pages.primitive_code import PackageCode
from toolwright.compile.pipeline import Result, Steps
from toolwright.incremental import keys, proofs
from toolwright.incremental.cache import Cache

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.codegen.models.reserved import Reserved
    from toolwright.codegen.pages.primitive_code import PrimitiveCode
    from toolwright.compile.resolve import Resolved
    from toolwright.diagnostics import Diagnostic
    from toolwright.incremental.keys import Keys
    from toolwright.incremental.worker import Job, Workers

BATCH = 24
"""How many tools one process takes at a time. Fewer than two batches are not worth starting another."""


class Reuse(Steps):
    """The steps of one run."""

    def __init__(self, before: Cache, made_by: Sequence[str], workers: Workers | None = None) -> None:
        """Take what the last run kept.

        Args:
            before: The cache.
            made_by: What goes into all that is generated, beside the manifest.
            workers: Make what is not in the cache, if there are any.
        """
        self._before = before
        self._made_by = made_by
        self._workers = workers
        self._now: Keys | None = None
        self._units: dict[str, PrimitiveCode] = {}
        self._digests: Mapping[str, str] = {}
        self._made: PackageCode | None = None
        self._proven: set[str] = set()

    def to_check(self, resolved: Resolved) -> Resolved:
        """The manifest with the tools that the last run did not find to be right as they are now."""
        self._now = keys.of_resolved(resolved, self._made_by)
        if self._before.around != self._now.around:
            return resolved
        dirty = tuple(tool for tool in resolved.tools if self._now.tools[tool.name] not in self._before.clean)
        outlines = {found.place: found for tool in dirty for _, found in resolved.schemas(tool)}
        return replace(resolved, tools=dirty, outlines=outlines)

    def digest(self, manifest: ir.Manifest) -> str:
        """The digest of all that the artifacts of a manifest are made from, once it is checked."""
        return keys.of_manifest(manifest, self._keys.tools)

    def begin_models(self, manifest: ir.Manifest) -> Callable[[], PackageCode]:
        """Begin to make the units that are not in the cache."""
        from toolwright.codegen.models import reserved
        from toolwright.codegen.pages.primitive_code import PackageCode

        first = reserved.of(manifest)
        begun = self._begin(manifest, first)  # while the compiler makes other files

        def made(taken: Reserved) -> PackageCode:
            return begun() if taken is first else self._begin(manifest, taken)()

        def settled() -> PackageCode:
            units, _ = reserved.settled(first, made, PackageCode.defined)
            self._made = units
            return units

        return settled

    def _begin(self, manifest: ir.Manifest, taken: Reserved) -> Callable[[], PackageCode]:
        """Begin to make the units that are not there yet, without the names that are taken."""
        from toolwright.codegen.models import reserved
        from toolwright.codegen.pages import modules

        of_shared = reserved.of_shared(manifest, taken)
        now = {
            tool.name: keys.of_unit(
                self._keys.tools[tool.name], of_shared | taken.under(tool.names.stem, reserved.of_tool(tool))
            )
            for tool in manifest.tools
        }
        there = {**self._before.units, **self._units}
        todo = [tool for tool in manifest.tools if now[tool.name] not in there]
        batches = [todo[start : start + BATCH] for start in range(0, len(todo), BATCH)]
        rest = modules.arguments_of_rest(manifest, taken)
        _, modelled, shared, source, command, _ = rest
        jobs: list[Job] = [(modules.make_rest, rest)]
        homes = modules.homes_for(todo, shared, taken) if batches else {}
        jobs += [(modules.make, (batch, homes, source, command, taken)) for batch in batches]
        if self._workers is None or not (batches or modelled or shared):
            results = None
        else:
            results = self._workers.begin(jobs, len(batches))

        def models() -> PackageCode:
            others, *made = results() if results else [make(*arguments) for make, arguments in jobs]
            fresh = dict(zip((tool.name for tool in todo), (unit for units in made for unit in units), strict=True))
            self._units |= {now[tool.name]: fresh.get(tool.name) or there[now[tool.name]] for tool in manifest.tools}
            self._digests = now
            return PackageCode({tool.name: self._units[now[tool.name]] for tool in manifest.tools}, *others)

        return models

    def prove(self, result: Result) -> list[Diagnostic]:
        """Build the models that are not known to work, in other processes; what is wrong with them.

        Args:
            result: What was compiled, with its artifacts.
        """
        manifest, artifacts = result.manifest, result.artifacts
        if manifest is None or self._made is None:
            return []
        modules = proofs.modules(manifest, self._made, self._digests)
        self._proven = {module.digest for module in modules}
        todo = [module for module in modules if module.digest not in self._before.proven]
        return proofs.prove(manifest, todo, artifacts, self._workers)

    def cache(self, result: Result) -> Cache:
        """What the next run can use, once the artifacts of this one are made, and proven where they are new."""
        clean = frozenset(self._keys.tools.values()) if result.is_clean else frozenset()
        return Cache(self._units, clean, self._keys.around, frozenset(self._proven or self._before.proven))

    @property
    def _keys(self) -> Keys:
        if self._now is None:
            raise RuntimeError("nothing was compiled yet")
        return self._now
