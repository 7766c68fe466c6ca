"""`stubwright dev`: generate and serve, and again after each save."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands import generate
from stubwright.commands.shared import inputs as works
from stubwright.commands.shared import launching
from stubwright.commands.shared.console import Printer, UsageError, err, out

if TYPE_CHECKING:
    import argparse

    from stubwright import ir
    from stubwright.commands.shared.watching import Inputs
    from stubwright.serving.issuer import Issuer
    from stubwright.serving.processes import Serving

_ADDRESS: Final = "127.0.0.1:8000"
_INSPECTOR: Final = "@modelcontextprotocol/inspector"
_SUBJECT: Final = "dev"
_ENDING: Final = ("SIGTERM", "SIGHUP")


def add(verbs: Any) -> None:
    """Add the parser of the command."""
    dev = verbs.add_parser("dev", help="generate and serve a manifest; start again on each save, until interrupted")
    launching.options(dev)
    dev.add_argument("--http", metavar="HOST:PORT", default=_ADDRESS, help=f"where to serve (default: {_ADDRESS})")
    dev.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="SCOPE",
        help="take no tokens but one of this run, which is printed and has this scope; may be repeated",
    )
    dev.add_argument("--as", dest="subject", metavar="NAME", help=f"whom that token is for (default: {_SUBJECT})")
    dev.add_argument("--inspector", action="store_true", help="open MCP's Inspector on the server; needs npx")
    dev.add_argument(
        "--debug-port",
        metavar="PORT",
        help="let a debugger attach to this port of 127.0.0.1, such as 5678; the server needs the package debugpy",
    )
    dev.add_argument(
        "--debug-wait", action="store_true", help="with --debug-port: start each server when a debugger is attached"
    )
    # It generates as `generate --watch` does, of which it has no other option.
    dev.set_defaults(verb=_dev, watch=True, check=False, force=False, stubs=False, strict=False, quiet=False)
    dev.set_defaults(format="text")


def _dev(arguments: argparse.Namespace) -> int:
    from stubwright.commands.shared import watching
    from stubwright.serving import processes

    npx = _find_npx() if arguments.inspector else None
    work = _find_run(arguments)
    if work is None:
        return 1
    arguments.manifests = (launching.manifest(work),)  # alone: the project's other packages are left as they are
    launching.interpreter(arguments)
    host, port = _parse_address(arguments.http)
    debugging = _list_debug_options(arguments)
    issuer = _make_issuer(arguments)
    with ExitStack() as stack:
        stack.enter_context(_handle_interrupts())
        try:
            key = issuer.public if issuer else None
            serving = stack.enter_context(processes.Serving(host, port, _report_end, key, debugging))
        except processes.AddressError as error:
            err(f"stubwright: {error}; `--http 127.0.0.1:0` takes any port that is free")
            return 1

        def read() -> Inputs | None:
            with suppress(UsageError):
                next_run = _find_run(arguments, quiet=True)
                return watching.inputs(next_run, imported=True) if next_run is not None else None
            return None

        is_announced = False
        for _ in watching.runs(read):
            try:
                served = _serve_once(arguments, serving)
            except UsageError as error:  # the project's table was taken away, perhaps by a save that is not done
                if arguments.scope and not is_announced:
                    raise
                err(f"stubwright: {error}")
                served = None
            if served is not None and not is_announced:
                is_announced = True
                _announce(arguments, served, serving)
                _announce_token(arguments, served, serving, issuer)
                if npx is not None:
                    _open_inspector(npx, serving.url, stack)
            if served is None:
                goes_on = "the server of the last good save goes on" if serving.is_running else "no server runs"
                err(f"stubwright: {goes_on}; the next good save is served")
            sys.stdout.flush()
    return 0


def _serve_once(arguments: argparse.Namespace, serving: Serving) -> ir.Manifest | None:
    """Generate, and start the new server; None if there is none. Raises UsageError."""
    from stubwright.project import launch
    from stubwright.serving import processes

    if generate.once(arguments) != 0:
        return None
    run = _find_run(arguments, quiet=True)
    manifest = launching.server(run, Printer("text", strict=False)) if run is not None else None
    if run is None or manifest is None:
        return None
    if arguments.scope:
        _check_scopes(arguments, manifest)
    start = launch.of(manifest, run.target, handlers=arguments.handlers, python=arguments.python)
    # Proved before the old server ends, and in a process of its own, because only there modules are imported anew.
    if (problem := processes.prove(start, {})) is not None:
        err(f"stubwright: the server cannot be made:\n{problem}")
        return None
    sys.stdout.flush()  # before the server writes
    try:
        serving.replace(start, {})
    except OSError as error:
        err(f"stubwright: the server cannot be started: {error.strerror or error}")
        return None
    out(f"{manifest.package}: serving {serving.url}\n")
    return manifest


def _find_run(arguments: argparse.Namespace, *, quiet: bool = False) -> works.Run | None:
    """Return what to work on; None if the project's table is wrong, reported unless `quiet`. Raises UsageError."""
    printer = Printer("text", strict=False)
    work = works.of(arguments, printer, arguments.output)
    if not quiet:
        printer.close()
    return work


def _announce(arguments: argparse.Namespace, manifest: ir.Manifest, serving: Serving) -> None:
    """Print how clients reach the server."""
    from stubwright.project.clients import configuration

    path = arguments.manifests[0]
    out(
        f"\nFor a client's configuration:\n{configuration.snippet(configuration.name_of(manifest), serving.url)}"
        f"`stubwright install CLIENT {path}` writes an entry that works without this command.\n"
        f"watching {path} and all that is read for it; interrupt to stop\n"
    )


def _make_issuer(arguments: argparse.Namespace) -> Issuer | None:
    """Return who signs the token of this run, where one is asked for. Raises UsageError."""
    if not arguments.scope:
        if arguments.subject is not None:
            raise UsageError("--as needs --scope, which says what that one may use")
        return None
    from stubwright.serving.issuer import Issuer

    return Issuer()


def _check_scopes(arguments: argparse.Namespace, manifest: ir.Manifest) -> None:
    """Raise UsageError where the manifest wants no tokens, or knows no such scope."""
    from stubwright.diagnostics.suggestions import did_you_mean
    from stubwright.serving.issuer import scopes_of

    if not manifest.document.get("auth"):
        raise UsageError(f"--scope is for servers that want tokens; `{arguments.manifests[0]}` has no `auth`")
    known = scopes_of(manifest.document)
    for scope in arguments.scope:
        if scope not in known:
            hint = did_you_mean(scope, known, "scopes")
            raise UsageError(f"--scope is `{scope}`, which the manifest does not name; {hint}")


def _announce_token(
    arguments: argparse.Namespace, manifest: ir.Manifest, serving: Serving, issuer: Issuer | None
) -> None:
    """Print a token of this run, or how to get one."""
    auth: Any = manifest.document.get("auth")
    if not auth:
        return
    if issuer is None:
        from stubwright.serving.issuer import scopes_of

        scopes = " ".join(f"--scope {scope}" for scope in scopes_of(manifest.document)[:2] or ("SCOPE",))
        out(f"callers need a token of {auth['issuer']}; to try without it, use: stubwright dev {scopes}\n")
        return
    from stubwright.serving.issuer import HOURS

    subject = arguments.subject or _SUBJECT
    token = issuer.token(auth, subject, arguments.scope)
    out(
        f"\nThe only token that this run takes, for `{subject}` with {' '.join(arguments.scope)} ({HOURS} hours):\n"
        f"TOKEN={token}\n"
        f'stubwright list {serving.url} --header "Authorization: Bearer $TOKEN"\n'
    )


def _parse_address(text: str) -> tuple[str, int]:
    from argparse import ArgumentTypeError

    from stubwright_runtime.server import main

    try:
        address = main.address(text)
    except ArgumentTypeError as error:
        raise UsageError(f"--http is {error}") from error
    if isinstance(address, int):
        raise UsageError(f"--http is {text!r}; it is HOST:PORT, such as {_ADDRESS}")
    return address


def _list_debug_options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the options of the server that let a debugger attach. Raises UsageError."""
    from argparse import ArgumentTypeError

    from stubwright_runtime.server import main

    if arguments.debug_port is None:
        if arguments.debug_wait:
            raise UsageError("--debug-wait needs --debug-port, such as --debug-port 5678")
        return ()
    try:
        port = main.port_number(arguments.debug_port)
    except ArgumentTypeError as error:
        raise UsageError(f"--debug-port is {error}") from error
    return ("--debug-port", str(port), *(["--debug-wait"] if arguments.debug_wait else []))


def _find_npx() -> str:
    """Return the program that fetches and runs the Inspector. Raises UsageError if there is none."""
    import shutil

    npx = shutil.which("npx")
    if npx is None:
        raise UsageError("--inspector needs npx, which is not on the PATH; it comes with Node.js: https://nodejs.org")
    return npx


def _open_inspector(npx: str, url: str, stack: ExitStack) -> None:
    """Run the Inspector until the end."""
    from stubwright.serving import processes

    command = [npx, "-y", _INSPECTOR, "--transport", "http", "--server-url", url]
    out(f"opening MCP's Inspector: npx {' '.join(command[1:])}\n")
    try:
        import subprocess

        inspector = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - as asked
    except OSError as error:
        err(f"stubwright: the Inspector cannot be started: {error.strerror or error}")
        return
    stack.callback(processes.end_group, inspector)


def _report_end(status: int) -> None:
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    err(f"stubwright: the server {how}; it is started again at the next save")


def _handle_interrupts() -> ExitStack:
    """Stop as after Ctrl-C on any signal that asks to stop, and stop all servers first."""
    stack = ExitStack()
    stack.enter_context(suppress(KeyboardInterrupt))

    def arrived(_number: int, _frame: object) -> None:
        for number in numbers:  # what ends takes its time, and is not ended in the middle
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGINT", *_ENDING) if hasattr(signal, name)]
    for number in numbers:
        stack.callback(signal.signal, number, signal.signal(number, arrived))
    return stack
