"""`toolwright dev`: generate and serve, and again after each save."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from toolwright.commands import generate
from toolwright.commands.shared import inputs as works
from toolwright.commands.shared import launching
from toolwright.commands.shared.console import Printer, UsageError, err, out

if TYPE_CHECKING:
    import argparse

    from toolwright import ir
    from toolwright.commands.shared.watching import Inputs
    from toolwright.serving.processes import Serving

_ADDRESS: Final = "127.0.0.1:8000"
_INSPECTOR: Final = "@modelcontextprotocol/inspector"
_ENDING: Final = ("SIGTERM", "SIGHUP")


def add(verbs: Any) -> None:
    """Say how the verb is called."""
    dev = verbs.add_parser("dev", help="generate and serve a manifest; start again on each save, until interrupted")
    launching.options(dev)
    dev.add_argument("--http", metavar="HOST:PORT", default=_ADDRESS, help=f"where to serve (default: {_ADDRESS})")
    dev.add_argument("--inspector", action="store_true", help="open MCP's Inspector on the server; needs npx")
    # It generates as `generate --watch` does, of which it has no other option.
    dev.set_defaults(verb=_dev, watch=True, check=False, force=False, stubs=False, strict=False, quiet=False)
    dev.set_defaults(format="text")


def _dev(arguments: argparse.Namespace) -> int:
    from toolwright.commands.shared import watching
    from toolwright.serving import processes

    npx = _npx() if arguments.inspector else None
    work = _work(arguments)
    if work is None:
        return 1
    arguments.manifests = (launching.manifest(work),)  # alone: the project's other packages are left as they are
    launching.interpreter(arguments)
    host, port = _address(arguments.http)
    with ExitStack() as held:
        held.enter_context(_interrupted())
        try:
            serving = held.enter_context(processes.Serving(host, port, _ended))
        except processes.AddressError as error:
            err(f"toolwright: {error}; `--http 127.0.0.1:0` takes any port that is free")
            return 1

        def read() -> Inputs | None:
            with suppress(UsageError):
                now = _work(arguments, quiet=True)
                return watching.inputs(now, imported=True) if now is not None else None
            return None

        is_told = False
        for _ in watching.runs(read):
            try:
                served = _turn(arguments, serving)
            except UsageError as error:  # the project's table was taken away, perhaps by a save that is not done
                err(f"toolwright: {error}")
                served = None
            if served is not None and not is_told:
                is_told = True
                _tell(arguments, served, serving)
                if npx is not None:
                    _open_inspector(npx, serving.url, held)
            if served is None:
                goes_on = "the server of the last good save goes on" if serving.is_running else "no server runs"
                err(f"toolwright: {goes_on}; the next good save is served")
            sys.stdout.flush()
    return 0


def _turn(arguments: argparse.Namespace, serving: Serving) -> ir.Manifest | None:
    """Generate, and start the server that comes of it; None where there is no new one. Raises UsageError."""
    from toolwright.project import launch
    from toolwright.serving import processes

    if generate.once(arguments) != 0:
        return None
    work = _work(arguments, quiet=True)
    manifest = launching.server(work, Printer("text", strict=False)) if work is not None else None
    if work is None or manifest is None:
        return None
    start = launch.of(manifest, work.target, handlers=arguments.handlers, python=arguments.python)
    # Proved in a process of its own, since only there it is imported anew; and before the old server ends.
    if (problem := processes.prove(start, {})) is not None:
        err(f"toolwright: the server cannot be made:\n{problem}")
        return None
    sys.stdout.flush()  # before the server writes
    try:
        serving.replace(start, {})
    except OSError as error:
        err(f"toolwright: the server cannot be started: {error.strerror or error}")
        return None
    out(f"{manifest.package}: serving {serving.url}\n")
    return manifest


def _work(arguments: argparse.Namespace, *, quiet: bool = False) -> works.Run | None:
    """What to work on; None where the project's table is wrong, which is told unless `quiet`. Raises UsageError."""
    printer = Printer("text", strict=False)
    work = works.of(arguments, printer, arguments.output)
    if not quiet:
        printer.close()
    return work


def _tell(arguments: argparse.Namespace, manifest: ir.Manifest, serving: Serving) -> None:
    """Tell a person how clients get to the server."""
    from toolwright.project.clients import configuration

    path = arguments.manifests[0]
    out(
        f"\nFor a client's configuration:\n{configuration.snippet(configuration.name_of(manifest), serving.url)}"
        f"`toolwright install CLIENT {path}` writes it into one for good, without this command.\n"
        f"watching {path} and all that is read for it; interrupt to stop\n"
    )


def _address(text: str) -> tuple[str, int]:
    from argparse import ArgumentTypeError

    from toolwright_runtime.server import main

    try:
        address = main.address(text)
    except ArgumentTypeError as error:
        raise UsageError(f"--http is {error}") from error
    if isinstance(address, int):
        raise UsageError(f"--http is {text!r}; it is HOST:PORT, such as {_ADDRESS}")
    return address


def _npx() -> str:
    """The program that fetches and runs the Inspector. Raises UsageError where there is none."""
    import shutil

    npx = shutil.which("npx")
    if npx is None:
        raise UsageError("--inspector needs npx, which is not on the PATH; it comes with Node.js: https://nodejs.org")
    return npx


def _open_inspector(npx: str, url: str, held: ExitStack) -> None:
    """Run the Inspector until the end."""
    from toolwright.serving import processes

    command = [npx, "-y", _INSPECTOR, "--transport", "http", "--server-url", url]
    out(f"opening MCP's Inspector: npx {' '.join(command[1:])}\n")
    try:
        inspector = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - as asked
    except OSError as error:
        err(f"toolwright: the Inspector cannot be started: {error.strerror or error}")
        return
    held.callback(processes.end_group, inspector)


def _ended(status: int) -> None:
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    err(f"toolwright: the server {how}; it is started again at the next save")


def _interrupted() -> ExitStack:
    """End as after Ctrl-C on any signal that asks for an end, and take care of all servers before."""
    held = ExitStack()
    held.enter_context(suppress(KeyboardInterrupt))

    def arrived(_number: int, _frame: object) -> None:
        for one in numbers:  # what ends takes its time, and is not ended in the middle
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGINT", *_ENDING) if hasattr(signal, name)]
    for number in numbers:
        held.callback(signal.signal, number, signal.signal(number, arrived))
    return held
