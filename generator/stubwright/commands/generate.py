"""`stubwright generate`: compile manifests and write changed files, once or on each save."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared.console import Printer, UsageError, explain, report, write_err
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    from stubwright.project.build import BuildResult
    from stubwright.project.files.lock import Lock
    from stubwright.project.files.tree import Changes


_OPTIONS: Final = """
-o, --output DIR  the folder for packages (default: the project's `output`, otherwise generated)
--check           write nothing; exit 1 and show the difference if the tree is stale
--force           overwrite generated files that were edited by hand
--emit PART…      what to generate, overriding the manifest's `emit`: server, client, typescript; may be repeated
--stubs           append missing methods to the handwritten class
--watch           generate again on each save, until interrupted
"""

PARTS: Final = ("server", "client", "typescript")
"""The values of `--emit`; copied from `ir.Emit`, which is slow to import."""


def add(verbs: Any) -> None:
    """Register the `generate` subcommand and its options."""
    generate = verbs.add_parser("generate", _generate, help="compile manifests, and write only changed files")
    works.add_options(generate)
    declare(generate, _OPTIONS, emit={"choices": PARTS})


def _generate(arguments: argparse.Namespace) -> int:
    if arguments.watch and arguments.check:
        raise UsageError("--watch and --check cannot be combined: --check writes nothing")
    if arguments.check and arguments.stubs:
        raise UsageError("--stubs and --check cannot be combined: --check writes nothing")
    return _watch(arguments) if arguments.watch else generate_once(arguments)


def _watch(arguments: argparse.Namespace) -> int:
    """Generate now and after each input change. An invalid save leaves the tree unchanged."""
    from stubwright.commands.shared import watching

    printer = Printer(arguments.format, strict=False)
    work = _find_run(arguments, printer)
    if work is None:
        return printer.close()
    if not all(Path(path).parent.is_dir() for path in work.manifests):
        return generate_once(arguments)  # this run reports the missing file
    announcement = f"watching {', '.join(work.manifests)} and the files that they use; interrupt to stop\n"

    def read() -> watching.Inputs | None:
        with suppress(UsageError):
            next_run = _find_run(arguments, Printer(arguments.format, strict=False))
            return watching.find_inputs(next_run) if next_run is not None else None
        return None

    with suppress(KeyboardInterrupt):
        for _ in watching.wait_for_runs(read):
            try:
                generate_once(arguments)
            except UsageError as error:  # the project's table was removed, perhaps by an incomplete save
                write_err(f"stubwright: {error}")
            if announcement:
                report(announcement)
                announcement = ""
            sys.stdout.flush()
    return 0


def _find_run(arguments: argparse.Namespace, printer: Printer) -> works.Run | None:
    run = works.find_run(arguments, printer, arguments.output)
    emit = tuple(part for part in PARTS if part in arguments.emit)
    return None if run is None else replace(run, target=replace(run.target, emit=emit))


def generate_quietly(arguments: argparse.Namespace) -> int:
    """Generate for a command that has only the arguments `manifests` and `output`; return the exit status."""
    flags = dict.fromkeys(("check", "force", "stubs", "watch", "strict"), False)
    return generate_once(
        argparse.Namespace(**{**vars(arguments), **flags, "emit": [], "format": "text"}), is_quiet=True
    )


def generate_once(arguments: argparse.Namespace, *, is_quiet: bool = False) -> int:
    """Compile the manifests, write the changed files, and return the exit status."""
    from stubwright.diagnostics import Diagnostic
    from stubwright.project.files import journal, layout, lock

    printer = Printer(arguments.format, strict=arguments.strict, quiet=is_quiet)
    run = _find_run(arguments, printer)
    if run is None:
        return printer.close()
    folder = run.target.folder
    try:
        with nullcontext() if arguments.check else journal.lock_output(folder):
            _compile(arguments, run, printer)
    except lock.LockError as error:
        printer.add([lock.report_unreadable(layout.show_path(folder, lock.NAME), error)])
    except OSError as error:
        help_ = "no file there was changed; fix the cause and run the command again"
        printer.add([Diagnostic("SW406", f"cannot write below `{folder}`: {explain(error)}", help=help_)])
    return printer.close()


def _compile(arguments: argparse.Namespace, run: works.Run, printer: Printer) -> None:
    from stubwright.project import build
    from stubwright.project.files import journal, layout, tree

    folder = run.target.folder
    if not arguments.check:
        journal.recover(folder)
    elif journal.was_interrupted(folder):
        printer.report_interrupted(folder)
    current_lock = first_lock = journal.read_lock(folder)
    names = [layout.make_relative(path, folder) for path in run.manifests]
    project = names if run.whole else None
    writes = not arguments.check
    if run.target.is_vendored:
        from stubwright.project import vendoring

        names.append(vendoring.ENTRY)
        runtime = vendoring.compare(tree.Tree(folder), current_lock, force=arguments.force)
        needed = () if vendoring.ENTRY in current_lock.manifests else vendoring.list_requirements()
        current_lock = _apply(runtime, folder, current_lock, printer, write=writes)
        if runtime.changes:
            shown = layout.show_path(folder, vendoring.FOLDER)
            printer.report_built(build.BuildResult(package=shown, changes=runtime, requirements=needed))
    is_known = True
    for path in run.manifests:
        trust = not (arguments.check or arguments.force or arguments.stubs)
        with printer.show_work(f"compiling {path}"):
            built = build.build(
                path, run.target, current_lock, trust=trust, force=arguments.force, writes=writes, project=project
            )
        printer.add_generated(path, built.diagnostics, built.documents)
        is_refused = built.changes is not None and built.changes.refused
        is_known = is_known and not built.failed and not is_refused
        if writes and (built.failed or is_refused) and (arguments.stubs or len(run.manifests) > 1):
            printer.say(f"{path}: nothing written{' or appended' if arguments.stubs else ''}")
        if built.changes is not None:
            current_lock = _apply(built.changes, folder, current_lock, printer, write=writes)
            printer.report_built(built)
            if arguments.stubs and not is_refused:  # if this fails, the class still belongs to the existing package
                _append_stubs(built, path, printer)
            else:
                printer.report_fit(built.fit)
        elif not built.failed:
            printer.say(f"{path}: up to date")
            if arguments.watch:
                _check_fit(path, run, printer)
        if built.keep is not None and writes:
            built.keep()
    if run.whole and not printer.failed:
        pruned = tree.prune(folder, current_lock, names)
        previous, current_lock = current_lock, _apply(pruned, folder, current_lock, printer, write=writes)
        printer.report_pruned(folder, previous, pruned)
    # Otherwise the files of a failed manifest would count as strays.
    if is_known:
        entries = [current_lock.manifests[name] for name in names if name in current_lock.manifests]
        packages = {path.partition("/")[0] for entry in entries for path in entry.files}
        strays = tree.find_strays(folder, first_lock, current_lock, None if run.whole else packages)
        if arguments.force:
            _apply(strays, folder, current_lock, printer, write=writes)
        printer.report_strays(folder, strays, removed=arguments.force)


def _check_fit(path: str, run: works.Run, printer: Printer) -> None:
    """Report problems in a manifest's handwritten class, which can change although the manifest did not."""
    from stubwright.compile import pipeline
    from stubwright.project import build
    from stubwright.project.files import disk

    compiled = pipeline.compile_manifest(path, disk.Disk())
    if compiled.manifest is not None:
        printer.add((), compiled.documents)
        printer.report_fit(build.fit(compiled.manifest, run.target.handlers, path))


def _apply(changes: Changes, folder: Path, current_lock: Lock, printer: Printer, *, write: bool) -> Lock:
    """Write the changes or, unless `write` is true, only show them. Return the new lock."""
    from stubwright.project.files import tree

    printer.add(changes.diagnostics)
    if write:
        tree.apply(folder, changes)
    else:
        printer.report_stale(folder, current_lock, changes)
    return changes.lock


def _append_stubs(built: BuildResult, path: str, printer: Printer) -> None:
    from stubwright.diagnostics import Diagnostic, Place
    from stubwright.project.files import disk
    from stubwright.project.handwritten import handlers

    fit = built.fit
    if fit is None or not fit.findings.is_found:
        printer.report_fit(fit)
        if built.handlers is not None and (fit is None or not fit.findings.diagnostics):
            message = f"`{built.handlers}` was not found, so no stubs were appended"
            help_ = "write the class, fix its module, or set `handlers` in `[tool.stubwright]` to the module's folder"
            at = Place(path, ("python", "handlers"))
            printer.add([Diagnostic("SW423", message, at, help_)])
        return
    missing = fit.findings.missing
    if missing:
        try:
            disk.create(fit.file.resolve(), handlers.with_stubs(fit.written, missing), fit.encoding)
        except OSError as error:
            message = f"cannot append stubs to `{fit.written.path}`: {error.strerror}"
            printer.add([Diagnostic("SW406", message, help="fix the cause and run the command again")])
            return
        names = handlers.list_names_to_import(fit.written, missing)
        count = "a method" if len(missing) == 1 else f"{len(missing)} methods"
        imported = f"; imported {', '.join(names)}" if names else ""
        printer.say(f"{fit.written.path}: {count} appended to {fit.written.name}{imported}")
        rest = tuple(diagnostic for diagnostic in fit.findings.diagnostics if diagnostic.code != "SW420")
        fit = replace(fit, findings=replace(fit.findings, diagnostics=rest))
    printer.report_fit(fit)
