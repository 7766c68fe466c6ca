"""`stubwright dev`: generate and serve a manifest, and restart after each save."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands import generate
from stubwright.commands.development import identity as identities
from stubwright.commands.shared import inputs as works
from stubwright.commands.shared import server_lookup
from stubwright.commands.shared.console import Printer, UsageError, report, write_err, write_out
from stubwright.commands.shared.options import declare
from stubwright.commands.shared.serving import parse_address

if TYPE_CHECKING:
    import argparse

    from stubwright import ir
    from stubwright.commands.development.reporter import Reporter
    from stubwright.commands.shared.watching import Inputs
    from stubwright.serving.processes import ServerSupervisor, StartupWait
    from stubwright.workbench.server import Workbench

_ADDRESS: Final = "127.0.0.1:8000"
_LAST_PORT: Final = 65535
_INSPECTOR: Final = "@modelcontextprotocol/inspector"
_ENDING: Final = ("SIGTERM", "SIGHUP")


_DEBUGGING: Final = """
--inspector        open MCP Inspector on the server; needs npx
--debug-port PORT  let a debugger attach to this port on 127.0.0.1, such as 5678; the server needs the debugpy package
--debug-wait       with --debug-port: start each server only after a debugger has attached
"""


_OPTIONS: Final = f"""
--http HOST:PORT  the server's address (default: {_ADDRESS})
--page HOST:PORT  the address of a page that shows the server and makes calls (default: the next port)
--no-page         serve no page
"""


def add(verbs: Any) -> None:
    """Register the `dev` subcommand and its options."""
    dev = verbs.add_parser("dev", help="generate and serve a manifest; restart on each save, until interrupted")
    server_lookup.add_options(dev)
    declare(dev, _OPTIONS, http={"default": _ADDRESS})
    identities.add_options(dev)
    declare(dev, _DEBUGGING)
    # It generates like `generate --watch`, without the other `generate` options.
    dev.set_defaults(verb=_dev, watch=True, check=False, force=False, stubs=False, strict=False, emit=[])
    dev.set_defaults(format="text")


def _dev(arguments: argparse.Namespace) -> int:
    from stubwright.commands.development.reporter import SERVER_OPTIONS, Reporter
    from stubwright.commands.shared import watching
    from stubwright.serving import processes

    npx = _find_npx() if arguments.inspector else None
    work = _find_run(arguments)
    if work is None:
        return 1
    if not Path(server_lookup.find_manifest(work)).exists():
        return generate.generate_once(arguments)
    arguments.manifests = (server_lookup.find_manifest(work),)  # the project's other packages are left unchanged
    server_lookup.find_interpreter(arguments)
    host, port = parse_address("--http", arguments.http)
    debugging = _list_debug_options(arguments)
    identity = identities.read(arguments)
    with ExitStack() as stack:
        stack.enter_context(_handle_interrupts())
        workbench = _open_workbench(arguments, port, stack)
        reporter = Reporter(workbench.content if workbench else None, identity)
        origins = [word for origin in workbench.origins for word in ("--allow-origin", origin)] if workbench else []
        try:
            serving = stack.enter_context(
                processes.ServerSupervisor(
                    host,
                    port,
                    reporter.report_end,
                    reporter.report_line,
                    identity.issuer.public if identity else None,
                    (*SERVER_OPTIONS, *origins),
                    debugging,
                )
            )
        except processes.AddressError as error:
            write_err(f"stubwright: {error}")
            return 1

        def read() -> Inputs | None:
            with suppress(UsageError):
                next_run = _find_run(arguments, quiet=True)
                return watching.find_inputs(next_run, imported=True) if next_run is not None else None
            return None

        is_announced = False
        for inputs in watching.wait_for_runs(read):
            startup = processes.StartupWait(
                inputs.watch(),
                lambda seconds, stack: reporter.report_slow(seconds, stack, is_running=serving.is_running),
            )
            try:
                served = _serve_once(arguments, serving, reporter, startup)
            except processes.StaleError:
                continue
            except UsageError as error:  # the project's table was removed, perhaps by an incomplete save
                if arguments.scope and not is_announced:
                    raise
                write_err(f"stubwright: {error}")
                served = None
            if served is not None and not is_announced:
                is_announced = True
                _announce(arguments, served, serving, workbench)
                identities.announce(identity, served, serving.url)
                if npx is not None:
                    _open_inspector(npx, serving.url, stack)
            if served is None:
                reporter.report_broken(is_running=serving.is_running)
            sys.stdout.flush()
    return 0


def _open_workbench(arguments: argparse.Namespace, port: int, stack: ExitStack) -> Workbench | None:
    """Serve the page on the next port or, if the next port is in use, on any free port. Raises UsageError."""
    if arguments.no_page:
        if arguments.page is not None:
            raise UsageError("--page and --no-page contradict each other")
        return None
    from stubwright.workbench.server import Workbench

    if arguments.page is not None:
        where = [parse_address("--page", arguments.page)]
    else:
        where = [("127.0.0.1", port + 1 if 0 < port < _LAST_PORT else 0), ("127.0.0.1", 0)]
    for at in where:
        try:
            return stack.enter_context(Workbench(*at))
        except OSError as error:
            why = error.strerror or str(error)
    hint = "`--page 127.0.0.1:0` uses any free port"
    raise UsageError(f"the page cannot be served at {arguments.page}: {why}; {hint}")


def _serve_once(
    arguments: argparse.Namespace, serving: ServerSupervisor, reporter: Reporter, startup: StartupWait
) -> ir.Manifest | None:
    """Generate a package and start its server. Return None if generation or startup fails.

    Raises UsageError and StaleError.
    """
    from stubwright.project import launch
    from stubwright.serving import processes

    if generate.generate_once(arguments) != 0:
        return None
    run = _find_run(arguments, quiet=True)
    saved = server_lookup.compile_server(run, Printer("text", strict=False)) if run is not None else None
    if run is None or saved is None or saved.manifest is None:
        return None
    manifest = saved.manifest
    if arguments.scope:
        identities.check_scopes(arguments.scope, manifest, arguments.manifests[0])
    start = launch.prepare(manifest, run.target, handlers=arguments.handlers, python=arguments.python)
    # Tested before the old server stops, in a new process, because only a new process imports changed modules again.
    if (problem := processes.prove(start, {}, startup)) is not None:
        write_err(f"stubwright: the server cannot be created:\n{problem}")
        return None
    sys.stdout.flush()  # print earlier output before the server's
    try:
        serving.replace(start, {}, startup)
    except OSError as error:
        write_err(f"stubwright: the server cannot be started: {error.strerror or error}")
        return None
    except processes.StartupError:
        return None
    write_out(f"{manifest.package}: serving {serving.url}\n")
    reporter.report_served(saved, manifest, serving.url)
    return manifest


def _find_run(arguments: argparse.Namespace, *, quiet: bool = False) -> works.Run | None:
    """Return the run, or None if the project table is invalid. Report errors unless `quiet` is true.

    Raises UsageError.
    """
    printer = Printer("text", strict=False)
    work = works.find_run(arguments, printer, arguments.output)
    if not quiet:
        printer.close()
    return work


def _announce(
    arguments: argparse.Namespace, manifest: ir.Manifest, serving: ServerSupervisor, workbench: Workbench | None
) -> None:
    from stubwright.project.clients import configuration

    path = arguments.manifests[0]
    if workbench is not None:
        report(f"\nTo try it, open {workbench.url}\n")
    snippet = configuration.format_snippet(configuration.find_default_name(manifest), serving.url)
    report(
        f"\nFor a client's configuration:\n{snippet}"
        f"`stubwright install CLIENT {path}` writes an entry that works without this command.\n"
        f"watching {path} and the files that it uses; interrupt to stop\n"
    )


def _list_debug_options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the server options that let a debugger attach. Raises UsageError."""
    from argparse import ArgumentTypeError

    from stubwright_runtime.server import main

    if arguments.debug_port is None:
        if arguments.debug_wait:
            raise UsageError("--debug-wait requires --debug-port, such as --debug-port 5678")
        return ()
    try:
        port = main.parse_port(arguments.debug_port)
    except ArgumentTypeError as error:
        raise UsageError(f"--debug-port: {error}") from error
    return ("--debug-port", str(port), *(["--debug-wait"] if arguments.debug_wait else []))


def _find_npx() -> str:
    import shutil

    npx = shutil.which("npx")
    if npx is None:
        raise UsageError("--inspector requires npx, which is not on the PATH; install Node.js: https://nodejs.org")
    return npx


def _open_inspector(npx: str, url: str, stack: ExitStack) -> None:
    from stubwright.serving import processes

    command = [npx, "-y", _INSPECTOR, "--transport", "http", "--server-url", url]
    write_out(f"opening MCP Inspector: npx {' '.join(command[1:])}\n")
    try:
        import subprocess

        inspector = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - as asked
    except OSError as error:
        write_err(f"stubwright: the Inspector cannot be started: {error.strerror or error}")
        return
    stack.callback(processes.end_group, inspector)


def _handle_interrupts() -> ExitStack:
    """Return a context in which every termination signal raises KeyboardInterrupt, so that all servers are stopped."""
    stack = ExitStack()
    stack.enter_context(suppress(KeyboardInterrupt))

    def on_signal(_number: int, _frame: object) -> None:
        for number in numbers:  # do not interrupt the cleanup
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGINT", *_ENDING) if hasattr(signal, name)]
    for number in numbers:
        stack.callback(signal.signal, number, signal.signal(number, on_signal))
    return stack
