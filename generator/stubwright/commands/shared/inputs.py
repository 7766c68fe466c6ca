"""Finds the manifests that a command works on, from the command line or the project, and the targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright import paths
from stubwright.commands.shared.console import UsageError
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stubwright.commands.shared.console import Printer
    from stubwright.project.build import Target
    from stubwright.project.config import Project


@dataclass(frozen=True, slots=True)
class Run:
    """The manifests that a command works on, and their project.

    Attributes:
        manifests: The manifests' paths.
        target: The target for their packages.
        whole: True if these are all of the project's manifests.
        project: The project, if found.
    """

    manifests: tuple[str, ...]
    target: Target
    whole: bool
    project: Project | None


_OPTIONS: Final = """
manifests MANIFEST*  manifests (default: from [tool.stubwright] in pyproject.toml)
--strict             exit 1 on warnings too
--format text|json|github  how to print diagnostics
"""


_FIX: Final = "specify one, such as specs/weather.yaml, or start with `stubwright new NAME`"

_TARGET: Final = """
--target TARGET…  a client or an API that must accept the tools, overriding the manifest's `targets`; may be repeated
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the manifests, and the options `--strict` and `--format`."""
    declare(parser, _OPTIONS)


def find_run(arguments: argparse.Namespace, printer: Printer, output: str | None = None) -> Run | None:
    """Return the run, or None after reporting an invalid project table. Raises UsageError."""
    from stubwright.project import config as project

    if output is not None and not output.strip():
        raise UsageError("-o is empty; specify a folder, such as `-o generated`")
    found_project, problems = project.find()
    manifests = tuple(dict.fromkeys(map(paths.normalize, arguments.manifests)))
    if problems and not manifests:
        printer.add(problems)
        return None
    target = find_target(found_project, output)
    if manifests:
        return Run(manifests, target, whole=False, project=found_project)
    if found_project is None:
        raise UsageError(f"no manifest is given, and no {project.FILE} here or above has [tool.stubwright]; {_FIX}")
    if not found_project.manifests:
        raise UsageError(f"no manifest is given, and [tool.stubwright] in {found_project.file} lists none; {_FIX}")
    return Run(found_project.manifests, target, whole=True, project=found_project)


def find_target(found_project: Project | None, output: str | None = None) -> Target:
    """Return the target for packages: `output` if given, otherwise the project's output folder."""
    from stubwright.project import build
    from stubwright.project import config as project

    configured_output = found_project.output if found_project is not None else None
    usual = found_project.folder / build.OUTPUT if found_project is not None else Path(build.OUTPUT)
    return build.Target(
        Path(output or configured_output or usual),
        is_configured=configured_output is not None
        and paths.normalize(output or configured_output) == configured_output,
        handlers=project.HANDLERS if found_project is None else found_project.handlers,
        is_vendored=found_project is not None and found_project.is_vendored,
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the option `--target`."""
    declare(parser, _TARGET)


def choose_targets(arguments: argparse.Namespace) -> Sequence[str]:
    """Return the `--target` values without duplicates. Raises UsageError if a target does not exist."""
    return parse_targets(arguments.target)


def parse_targets(names: Sequence[str]) -> tuple[str, ...]:
    """Return the named targets, with presets expanded. Raises UsageError if a target does not exist."""
    from stubwright.diagnostics.suggestions import did_you_mean
    from stubwright.targets import TARGETS

    for name in names:
        if name not in TARGETS.list_names():
            fix = did_you_mean(name, TARGETS.list_names(), "targets")
            raise UsageError(f"there is no target `{name}`; {fix or 'see `stubwright targets`'}")
    return TARGETS.expand(names)
