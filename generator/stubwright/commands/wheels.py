"""`stubwright wheels`: write wheels of the runtime and the compiler for environments that cannot download them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared.console import write_err, write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse


_OPTIONS: Final = """
-o, --output DIR  the folder for the wheels (default: wheels)
--runtime-only    only stubwright-runtime, which servers need
--light           also write light.txt: requirements for lock, verify, test, record and replay without the compiler
"""


def add(verbs: Any) -> None:
    """Register the `wheels` subcommand and its options."""
    wheels = verbs.add_parser("wheels", _wheels, help="write wheels of the runtime and of stubwright itself")
    declare(wheels, _OPTIONS, output={"default": "wheels"})


def _wheels(arguments: argparse.Namespace) -> int:
    from importlib.metadata import PackageNotFoundError

    from stubwright.project import optional_dependencies, wheels

    folder = Path(arguments.output)
    try:
        for path in wheels.write(folder, runtime_only=arguments.runtime_only):
            write_out(f"{path.as_posix()}\n")
        if arguments.light:
            write_out(f"{optional_dependencies.write_requirements(folder).as_posix()}\n")
    except PackageNotFoundError as error:
        write_err(f"stubwright: {error.name} is not installed, so its wheel cannot be built")
        return 1
    except OSError as error:
        write_err(f"stubwright: cannot write `{error.filename or folder}`: {error.strerror or error}")
        return 1
    return 0
