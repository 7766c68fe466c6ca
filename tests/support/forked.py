"""Runs `stubwright` and Python in processes forked from a parent that has imported all modules that they need.

    python forked.py SOCKET [PACKAGE…]

Receives commands on a socket, with their environment and their streams, and sends their exit statuses. Commands do not
share state. The most expensive shared work is done once: imports, the digest of stubwright, and the templates. Without
a package, only third-party modules are loaded. `STUBWRIGHT_WHOLE_PROCESSES` in the environment starts a new interpreter
for each command.
"""

from __future__ import annotations

import fcntl
import gc
import json
import logging
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import IO, NoReturn

import standin
from stubwright.commands import VERBS

WHOLE = "STUBWRIGHT_WHOLE_PROCESSES" in os.environ or not hasattr(os, "fork")

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Disables pytest's plugins, which take most of its start time."""

_OURS = ("stubwright", "stubwright_runtime")

_OTHERS = (
    "anyio._backends._asyncio",
    "black",
    "datamodel_code_generator.config",
    "datamodel_code_generator.model.pydantic_v2",
    "datamodel_code_generator.model.scalar",
    "datamodel_code_generator.model.union",
    "datamodel_code_generator.parser.jsonschema",
    "encodings.unicode_escape",
    "encodings.utf_8_sig",
    "http.server",
    "httpcore2._backends.anyio",
    "httpx2",
    "jsonschema_specifications",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "pytest",
    "starlette.applications",
    "uvicorn",
)
_EXECUTABLE = "STUBWRIGHT_STANDIN"
"""The environment variable with the program that a forked interpreter uses as `sys.executable`."""

LAST_MOMENT = "STUBWRIGHT_TESTS_LAST_MOMENT"
"""The environment variable with the seconds for which a forked `stubwright test` watches a server at its end."""

_HERE = VERBS.keys() - {"dev", "mock", "record", "replay", "test"}
"""Commands that can run in the process of a test, because they do not serve until they are stopped."""

_INSTALLED = sys.path[1 + len([*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]) :]
"""The interpreter's default module path."""


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command. Return its output and exit status.

    `env` extends the environment and requires a separate interpreter.

    Commands that do not serve and do not read standard input run in this process.
    """
    if WHOLE or env:
        command = [sys.executable, "-m", "stubwright", *argv]
        return subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
        )
    # The streams and the working directory belong to the process, so threads cannot run commands concurrently.
    if argv[:1] and argv[0] in _HERE and threading.current_thread() is threading.main_thread():
        return _run_here(argv, cwd)
    return _done(["stubwright", *argv], cwd, os.environ, _parent(*_OURS))


def _run_here(argv: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    from stubwright import cli

    environment, folder, streams = dict(os.environ), Path.cwd(), (sys.stdin, sys.stdout, sys.stderr)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, _redirected(out, err):
        os.chdir(cwd)
        try:
            sys.stdin = os.fdopen(0, closefd=False)
            # Both must outlive the command, which wraps their buffers.
            sys.stdout = text_out = os.fdopen(1, "w", closefd=False)
            sys.stderr = text_err = os.fdopen(2, "w", errors="backslashreplace", closefd=False)
            status = cli.execute(argv)
            del text_out, text_err
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(["stubwright", *argv], status, out.read(), err.read())


@contextmanager
def _redirected(out: IO[str], err: IO[str]) -> Iterator[None]:
    """Redirect the standard streams, including the streams of processes started in the block."""
    kept = [os.dup(number) for number in range(3)]
    try:
        with Path(os.devnull).open() as nothing:
            for number, file in enumerate((nothing, out, err)):
                os.dup2(file.fileno(), number)
        yield
    finally:
        for number, copy in enumerate(kept):
            os.dup2(copy, number)
            os.close(copy)


def python(argv: Sequence[str], cwd: Path, path: Sequence[Path] = (), **env: str) -> subprocess.CompletedProcess[str]:
    """Run `python` with `-m MODULE` or `-c PROGRAM` and arguments. Return its output and exit status.

    `path` is its PYTHONPATH, and `env` extends the environment. Variables that the interpreter reads at startup (hash
    seed, UTF-8 mode) have no effect.
    """
    return _python_done(argv, cwd, {**os.environ, **env, "PYTHONPATH": os.pathsep.join(map(str, path))}, *_OURS)


def python_with(argv: Sequence[str], cwd: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """Run `python` with the stubwright or runtime in a folder. Only third-party modules are preloaded."""
    return _python_done(argv, cwd, {**os.environ, "PYTHONPATH": str(path)})


def _python_done(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], *loaded: str
) -> subprocess.CompletedProcess[str]:
    if WHOLE:
        command = [sys.executable, *argv]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environment)
    return _done(["python", *argv], cwd, environment, _parent(*loaded))


def interpreter() -> list[str]:
    """Return a command prefix that replaces `sys.executable`, to be followed by `-m MODULE`, `-c PROGRAM` or a file."""
    return [sys.executable] if WHOLE else [sys.executable, "-S", "-E", standin.__file__, _parent(*_OURS)]


def interpreter_in(folder: Path) -> Path:
    """Write the same command as a program to a folder. It is `sys.executable` in its processes."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\n{_EXECUTABLE}="$0" exec {shlex.join(interpreter())} "$@"\n')
    program.chmod(0o755)
    return program


def _done(command: Sequence[str], cwd: Path, env: Mapping[str, str], parent: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, Path(os.devnull).open() as nothing:
        streams = {number: stream.fileno() for number, stream in enumerate((nothing, out, err))}
        status = standin.status(standin.connect(parent, command, str(cwd), env, streams))
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), err.read())


_PARENTS = "STUBWRIGHT_TESTS_PARENTS"
"""The environment variable with the folder of the parents' sockets, shared by all processes of this run."""

_started: list[subprocess.Popen[bytes]] = []
_ending = ExitStack()


def begin() -> None:
    """Create the folder for the parents, which stop with this process or on `close`."""
    folder = _ending.enter_context(tempfile.TemporaryDirectory())
    os.environ[_PARENTS] = folder
    alive = Path(folder, "alive")
    os.mkfifo(alive)
    # A reader reaches the end of this pipe when no process has it open for writing.
    _ending.callback(os.close, os.open(alive, os.O_RDWR))


def close() -> None:
    """Stop the parents."""
    _ending.close()
    for process in _started:
        process.wait()


@cache
def _parent(*packages: str) -> str:
    """Return the socket of a listening parent that has loaded packages."""
    folder = Path(os.environ[_PARENTS])
    where = folder / "-".join((*packages, "others"))
    with (folder / "lock").open("w") as lock, (folder / "alive").open("rb") as alive:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not where.exists():
            command = [sys.executable, __file__, str(where), *packages]
            process = subprocess.Popen(command, stdin=alive, stdout=subprocess.PIPE)
            _started.append(process)
            assert process.stdout is not None
            assert process.stdout.readline() == b"listening\n"
    return str(where)


def main() -> None:
    """Serve until standard input is closed."""
    for package in map(import_module, sys.argv[2:]):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    for name in _OTHERS:
        import_module(name)
    if "stubwright" in sys.argv[2:]:
        from stubwright.codegen.source import render
        from stubwright.incremental import digests

        digests.compute_generator_digest()
        for name in (templates := render._environment()).list_templates():
            templates.get_template(name)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(100)
        print("listening", flush=True)
        _serve(listening)


def _serve(listening: socket.socket) -> None:
    """Run each command in a process, forward signals, and send exit statuses."""
    links: dict[int, socket.socket] = {}
    ended, ending = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(ending, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ending, warn_on_full_buffer=False)
    while sys.stdin not in (ready := select.select([listening, sys.stdin, ended, *links.values()], [], [])[0]):
        if ended in ready:
            os.read(ended, 4096)
            _tell_ends(links)
        for child, link in links.items():
            if link in ready:
                sent = _read(link)
                os.kill(child, sent[0] if sent else signal.SIGKILL)
        if listening in ready:
            link, _ = listening.accept()
            head, files, _, _ = socket.recv_fds(link, 4, 99)
            asked = link.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _command(files, **json.loads(asked))
            for file in files:
                os.close(file)
            links[child] = link


def _read(link: socket.socket) -> bytes:
    """Return the number of a signal to forward, or `None` if the client has disconnected."""
    with suppress(ConnectionResetError):
        return link.recv(1)
    return b""


def _tell_ends(links: dict[int, socket.socket]) -> None:
    """Send the statuses of finished commands to their clients."""
    with suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            with links.pop(child[0]) as link, suppress(BrokenPipeError):
                link.sendall(b"%d" % os.waitstatus_to_exitcode(child[1]))


def _command(files: list[int], numbers: list[int], command: list[str], cwd: str, env: dict[str, str]) -> NoReturn:
    """Run a command's process."""
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
        aside = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 500) for file in files]
        os.closerange(3, 500)
        for file, number in zip(aside, numbers, strict=True):
            os.dup2(file, number)
            os.close(file)
        # Kept open until exit, like an interpreter's streams.
        streams = (
            os.fdopen(0, closefd=False),
            os.fdopen(1, "w", buffering=1, closefd=False),
            os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False),
        )
        sys.stdin, sys.stdout, sys.stderr = streams
        if (seconds := os.environ.pop(LAST_MOMENT, "")) and "stubwright" in sys.modules:
            vars(import_module("stubwright.contract_tests.crashes"))["LAST_MOMENT"] = float(seconds)
        if command[0] == "stubwright":
            sys.argv = command
            import_module("stubwright.cli").main()
        status = _python(*command[1:])
        logging.shutdown()  # as an interpreter does at exit; a thread may still write the log
        sys.stdout.flush()
        os._exit(status)
    except BaseException:  # noqa: BLE001 - as an interpreter does at exit
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _python(kind: str, *given: str) -> int:
    """Run a program, a module or a file as an interpreter does, and return its exit status."""
    sys.path[:] = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *_INSTALLED]
    sys.executable = os.environ.pop(_EXECUTABLE, sys.executable)
    arguments = [*given]
    if kind == "-P":
        kind, *arguments = arguments
    else:
        sys.path.insert(0, str(Path.cwd() if kind in ("-m", "-c") else Path(kind).parent))
    sys.argv = [kind, *arguments[1:]] if kind in ("-m", "-c") else [kind, *arguments]
    try:
        if kind == "-m":
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        elif kind == "-c":
            exec(arguments[0], {"__name__": "__main__"})
        else:
            runpy.run_path(kind, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    main()
