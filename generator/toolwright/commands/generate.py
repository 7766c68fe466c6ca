"""`toolwright generate`: compile, and write only what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolwright.commands import work as works
from toolwright.commands.printing import Printer, reason

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from toolwright.lock import Lock
    from toolwright.workspace import Changes


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    generate = verbs.add_parser("generate", help="compile manifests; write only what changed")
    works.options(generate)
    generate.add_argument(
        "-o", "--output", metavar="DIR", help="where packages go (default: as the project says, else generated)"
    )
    generate.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and show the difference where the tree is stale"
    )
    generate.add_argument("--force", action="store_true", help="overwrite generated files that were edited by hand")
    generate.set_defaults(verb=_generate)


def _generate(arguments: argparse.Namespace) -> int:
    from toolwright import build, lock, workspace
    from toolwright.diagnostics import Diagnostic

    printer = Printer(arguments.format, strict=arguments.strict)
    work = works.of(arguments, printer, arguments.output)
    if work is None:
        return printer.close()
    folder = work.target.folder
    try:
        known = workspace.read_lock(folder)
        for path in work.manifests:
            trust = not arguments.check and not arguments.force
            built = build.build(path, work.target, known, trust=trust, force=arguments.force)
            printer.add(built.diagnostics, built.documents)
            if built.changes is not None:
                known = _carry_out(built.changes, folder, printer, write=not arguments.check)
                printer.made(built)
            elif not built.failed:
                printer.say(f"{path}: up to date")
        if work.whole and not printer.failed:
            names = [workspace.relative(path, folder) for path in work.manifests]
            _carry_out(workspace.prune(folder, known, names), folder, printer, write=not arguments.check)
    except lock.LockError as error:
        printer.add([lock.unreadable(workspace.shown(folder, lock.NAME), error)])
    except BrokenPipeError:
        raise
    except OSError as error:
        help_ = "nothing was changed there; mend it and run the command again"
        printer.add([Diagnostic("TW406", f"cannot write below `{folder}`: {reason(error)}", help=help_)])
    return printer.close()


def _carry_out(changes: Changes, folder: Path, printer: Printer, *, write: bool) -> Lock:
    """Write changes, or show them; and give the lock as it is then."""
    from toolwright import workspace

    printer.add(changes.diagnostics)
    if write:
        workspace.apply(folder, changes)
    else:
        printer.stale(folder, changes)
    return changes.lock
