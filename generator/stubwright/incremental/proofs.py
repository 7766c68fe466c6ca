"""Tests models before a package is written and reports models that cannot be built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright import naming
from stubwright.diagnostics import Diagnostic, Place
from stubwright.incremental import proof
from stubwright.incremental.digests import compute_digest
from stubwright.incremental.worker import run_parallel

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.codegen.pages.artifacts import Artifact
    from stubwright.codegen.pages.primitive_code import PackageCode
    from stubwright.incremental.proof import BuildFailure
    from stubwright.incremental.worker import Job, Workers

_BATCH = 300
"""The number of modules per process; each process imports the shared modules again."""

_HELP = (
    "nothing was written. This is a bug in stubwright, not your mistake: please report it with the schema; "
    "until it is fixed, rewrite the schema"
)


@dataclass(frozen=True, slots=True)
class Module:
    """A models module: its name within `models`, a digest of its sources, and a description.

    `places` maps class name prefixes to the source locations of the schemas; the last entry applies to all other
    classes.
    """

    name: str
    digest: str
    what: str
    places: tuple[tuple[str, Place], ...]

    def place(self, cls: str) -> Place:
        """Return the source location of a class's schema."""
        return next((place for start, place in self.places if cls.startswith(start)), self.places[-1][1])


def list_modules(manifest: ir.Manifest, code: PackageCode, units: Mapping[str, str]) -> list[Module]:
    """Return a manifest's models modules; imported modules come first.

    Args:
        manifest: The manifest.
        code: The manifest's generated code.
        units: The digests of the tools' modules.
    """
    return [*_list_shared_modules(manifest, code), *_primitives(manifest, code), *_tools(manifest, units)]


def _list_shared_modules(manifest: ir.Manifest, code: PackageCode) -> Iterator[Module]:
    sources = [module.source for module in (*code.circles.values(), *code.shared.values())]
    around = compute_digest("\0".join(sources).encode())
    for circle in code.circles:
        members = [
            each for each in manifest.shared if each.circle is not None and naming.name_circle(each.circle) == circle
        ]
        places = [(naming.name_shared_class(each.names), each.schema.place) for each in members]
        places.sort(key=lambda each: -len(each[0]))
        what = "shared schemas that reference each other"
        yield Module(
            f"shared.{circle}",
            compute_digest(f"{around} {circle}".encode()),
            what,
            (*places, ("", members[0].schema.place)),
        )
    for schema in manifest.shared:
        if schema.name in code.shared:
            name = f"shared.{schema.names.module}"
            what = f"the shared schema `{schema.name}`"
            yield Module(name, compute_digest(f"{around} {name}".encode()), what, (("", schema.schema.place),))


def _primitives(manifest: ir.Manifest, code: PackageCode) -> Iterator[Module]:
    primitives = (*manifest.resources, *manifest.templates, *manifest.prompts)
    for primitive, unit in zip(primitives, code.primitives, strict=True):
        if unit.home is not None and unit.module:
            what = f"the {primitive.kind} `{primitive.key}`"
            yield Module(unit.home, compute_digest(unit.module.encode()), what, (("", primitive.place),))


def _tools(manifest: ir.Manifest, units: Mapping[str, str]) -> Iterator[Module]:
    for tool in manifest.tools:
        places = [(naming.name_input_class(tool.names), tool.input.place)]
        if tool.output is not None:
            places.append((naming.name_output_class(tool.names), tool.output.place))
        places += [(question.answer, question.place) for question in tool.questions]
        yield Module(tool.names.module, units[tool.name], f"the tool `{tool.name}`", (*places, ("", tool.place)))


def prove(
    manifest: ir.Manifest, todo: Sequence[Module], artifacts: Sequence[Artifact], workers: Workers | None
) -> list[Diagnostic]:
    """Build the modules' models in other processes.

    Args:
        manifest: The manifest.
        todo: The modules to build.
        artifacts: The files of the manifest's package.
        workers: The worker processes; None to start one.

    Returns:
        An error for each class that cannot be built, and for each module that cannot be imported.
    """
    if not todo:
        return []
    sources = {"__init__.py": b""}  # models do not need its exports
    root = f"{manifest.package}/"
    sources |= {
        artifact.path.removeprefix(root): artifact.data
        for artifact in artifacts
        if artifact.path.startswith(f"{root}models/") and artifact.path.endswith(".py")
    }
    names = [module.name for module in todo]
    jobs: list[Job] = [
        (proof.build, (manifest.package, sources, names[start : start + _BATCH]))
        for start in range(0, len(names), _BATCH)
    ]
    by_name = {module.name: module for module in todo}
    failures = [each for results in run_parallel(jobs, workers) for each in results]
    return [_diagnostic(by_name[each.module], each) for each in failures]


def _diagnostic(module: Module, failure: BuildFailure) -> Diagnostic:
    what = f"the class `{failure.name}`" if failure.name else "the models module"
    message = f"{what} for {module.what} cannot be built: {failure.why}"
    return Diagnostic("SW409", message, module.place(failure.name), _HELP)
