"""`toolwright` and Python in a process of its own for each command, forked from one that has imported all it could need.

    python forked.py

Reads commands from standard input and answers with exit statuses, a line of JSON each. A command finds nothing that
another one did; only the imports, which cost most of a small command, are done once. `TOOLWRIGHT_WHOLE_PROCESSES` in
the environment makes each command a new interpreter.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NoReturn

import toolwright

WHOLE = "TOOLWRIGHT_WHOLE_PROCESSES" in os.environ or not hasattr(os, "fork")

_OTHERS = (
    "black",
    "datamodel_code_generator.model.pydantic_v2",
    "datamodel_code_generator.parser.jsonschema",
    "httpx2",
    "jsonschema_specifications",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "pytest",
    "starlette.applications",
    "uvicorn",
)

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""For a pytest that needs nothing of its plugins, which take longer to load than all the rest."""

_INSTALLED = sys.path[1 + len([*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]) :]
"""Where modules are that an interpreter finds by itself."""


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What a command prints, and its exit status; `env` is added to the environment, with an interpreter of its own."""
    if WHOLE or env:
        command = [sys.executable, "-m", "toolwright", *argv]
        return subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
        )
    return _answer(["toolwright", *argv], cwd, os.environ)


def python(argv: Sequence[str], cwd: Path, path: Sequence[Path] = (), **env: str) -> subprocess.CompletedProcess[str]:
    """What `python` prints with `-m MODULE` or `-c PROGRAM` and arguments, and its exit status.

    `path` is its PYTHONPATH, and `env` is added to the environment. What the interpreter itself reads there (hash seed,
    UTF-8 mode) comes too late.
    """
    environment = {**os.environ, **env, "PYTHONPATH": os.pathsep.join(map(str, path))}
    if WHOLE:
        command = [sys.executable, *argv]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environment)
    return _answer(["python", *argv], cwd, environment)


def _answer(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as name:
        out, err = Path(name, "out"), Path(name, "err")
        asked = {"command": command, "cwd": str(cwd), "env": dict(env), "out": str(out), "err": str(err)}
        status = _parent().answer(asked)
        return subprocess.CompletedProcess(command, status, out.read_text(), err.read_text())


class _Parent:
    """The process that commands are forked from, as this one sees it."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, text=True)
        atexit.register(self._process.communicate)

    def answer(self, asked: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        status: int = json.loads(self._process.stdout.readline())
        return status


@cache
def _parent() -> _Parent:
    return _Parent()


def main() -> None:
    """Answer until standard input is closed."""
    for module in walk_packages(toolwright.__path__, "toolwright."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in _OTHERS:
        import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _command(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


def _command(command: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> NoReturn:
    """Be the process of a command."""
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, writing), (2, err, writing)):
            opened = os.open(path, flags)
            os.dup2(opened, number)
            os.close(opened)
        # Kept until the end, as an interpreter keeps its own.
        streams = os.fdopen(0, closefd=False), *(os.fdopen(number, "w", closefd=False) for number in (1, 2))
        sys.stdin, sys.stdout, sys.stderr = streams
        if command[0] == "toolwright":
            sys.argv = command
            import_module("toolwright.cli").main()
        status = _python(*command[1:])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    except BaseException:  # noqa: BLE001 - as an interpreter does at its end
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _python(kind: str, program: str, *arguments: str) -> int:
    """Be an interpreter: run a program or a module, and give its exit status."""
    sys.path[:] = [os.getcwd(), *filter(None, os.environ["PYTHONPATH"].split(os.pathsep)), *_INSTALLED]
    sys.argv = [kind, *arguments]
    try:
        if kind == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            exec(program, {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    main()
