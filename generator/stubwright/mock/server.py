"""A mock server for a manifest: the runtime of generated servers, with handlers that need no logic.

Takes a lowered manifest; writes it into a temporary folder, serves it from there, and takes the folder away again.
Nothing is written into the project.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from stubwright import naming
from stubwright.codegen import surface
from stubwright.mock.package import ROWS
from stubwright.project.files import disk

if TYPE_CHECKING:
    from stubwright import ir

_LEFT_OUT: Final = frozenset({"ask", "auth", "bind", "handles", "http", "policy"})
"""Our keys that do not apply to a mock: it has no limits, needs no authorization, calls no API, and asks nothing."""

_LOADER: Final = "stubwright.mock.package"
_STOPPING: Final = ("SIGINT", "SIGTERM", "SIGHUP")


def serve(
    manifest: ir.Manifest,
    options: Sequence[str],
    *,
    seed: int,
    loader: str = _LOADER,
    files: Mapping[str, bytes] | None = None,
) -> int:
    """Serve until the client leaves or a signal comes.

    Args:
        manifest: The lowered manifest.
        options: For the package's own command, such as `--http`.
        seed: What made answers depend on.
        loader: The module whose `load` gives the package and its handlers in the process of the server.
        files: More files for it, by their names.

    Returns:
        The exit status.

    Raises:
        OSError: The temporary folder cannot be written.
    """
    with forward_signals() as pass_on, tempfile.TemporaryDirectory(prefix="stubwright-mock-") as name:
        folder = Path(name)
        mocked = _remove_policies(manifest)
        _write(folder, mocked, seed)
        home = folder / mocked.package
        disk.create(home / "__init__.py", _MODULE.format(loader=loader))
        for path, data in (files or {}).items():
            disk.write(home / path, data)
        handlers = f"{mocked.package}:HANDLERS"
        # -P: neither the working folder nor what lies in it hides a module of the server.
        command = [sys.executable, "-P", "-m", mocked.package, "--handlers", handlers, *options]
        path = os.pathsep.join([name, *filter(None, [os.environ.get("PYTHONPATH")])])
        # A session of its own: a terminal's Ctrl-C comes once, from here, and not twice.
        process = subprocess.Popen(  # noqa: S603 - our own
            command, env={**os.environ, "PYTHONPATH": path}, start_new_session=True
        )
        pass_on(process)
        status = process.wait()
    return status if status >= 0 else 128 - status


def _remove_policies(manifest: ir.Manifest) -> ir.Manifest:
    """Return the manifest as it is mocked: a server, with its schemas, contents and examples, and no more."""
    document: Mapping[str, Any] = {
        key: [_remove_extension_keys(entry) for entry in value] if isinstance(value, list) else value
        for key, value in manifest.document.items()
        if key not in _LEFT_OUT
    }
    package = manifest.package + "_mock"  # cannot hide a module that is needed here, whatever the manifest says
    tools = tuple(_remove_handles(tool) for tool in manifest.tools)
    shared = tuple(
        replace(shared_schema, schema=replace(shared_schema.schema, handles={})) for shared_schema in manifest.shared
    )
    return replace(
        manifest, package=package, emit=frozenset({"server"}), document=document, tools=tools, shared=shared, handles=()
    )


def _remove_handles(tool: ir.Tool) -> ir.Tool:
    """Return a tool that gets the arguments as callers send them, with ids of handles as plain strings."""
    output = None if tool.output is None else replace(tool.output, handles={})
    sent = replace(tool.sent, handles={})
    return replace(tool, input=sent, output=output, bound=frozenset(), has_handles=False)


def _remove_extension_keys(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    extension = entry.get("stubwright")
    if extension is None:
        return entry
    return {**entry, "stubwright": {key: value for key, value in extension.items() if key not in _LEFT_OUT}}


def _write(folder: Path, manifest: ir.Manifest, seed: int) -> None:
    """Write a package without models, which nothing of a mock needs; making them takes most of the time of a build."""
    home = folder / manifest.package
    rows = {
        "tools": [{"name": tool.name, "method": tool.names.method} for tool in manifest.tools],
        "resources": [{"uri": each.key, "method": _find_method(each)} for each in manifest.resources],
        "templates": [
            {"uri": each.key, "method": each.names.method, "completes": _find_completion(each)}
            for each in manifest.templates
        ],
        "prompts": [
            {"name": each.key, "method": _find_method(each), "completes": _find_completion(each)}
            for each in manifest.prompts
        ],
        "methods": {method.name: (method.role, method.key) for method in surface.handler_methods(manifest)},
        "json": _find_json_resources(manifest),
        "seed": seed,
    }
    for path, data in manifest.files.items():
        disk.write(home / path, data)
    disk.write(home / "manifest.json", to_json(manifest.document))
    disk.write(home / ROWS, to_json(rows))
    disk.create(home / "__main__.py", _PROGRAM)


_MODULE: Final = """from pathlib import Path

from {loader} import load

PACKAGE, HANDLERS = load(__name__, Path(__file__).parent)
"""
_PROGRAM: Final = """from stubwright_runtime.generated import main

from . import PACKAGE

main(PACKAGE)
"""


def _find_method(primitive: ir.Primitive) -> str | None:
    """Return the handlers' method of a resource or a prompt; `None` if the manifest has its content."""
    return primitive.names.method if primitive.handled else None


def _find_completion(primitive: ir.Primitive) -> str | None:
    """Return the handlers' method that completes its arguments; `None` if none does."""
    return naming.completion(primitive.names) if primitive.completes else None


def _find_json_resources(manifest: ir.Manifest) -> list[str]:
    """Return the resources and resource templates whose MIME type is one of JSON (RFC 6839, 3.1)."""
    media_types = [
        (primitive.key, str(primitive.definition.get("mimeType", "")).partition(";")[0].strip().lower())
        for primitive in (*manifest.resources, *manifest.templates)
    ]
    return [key for key, kind in media_types if kind == "application/json" or kind.endswith("+json")]


@contextmanager
def forward_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Let signals that ask for an end go to a server, which stops cleanly, instead of ending this process.

    Gives what names the server; it gets those that came before, too.
    """
    servers: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def arrived(number: int, _frame: object) -> None:
        early.append(number)
        for server in servers:
            server.send_signal(_translate_signal(number))

    def pass_on(server: subprocess.Popen[bytes]) -> None:
        for number in early:
            server.send_signal(_translate_signal(number))
        servers.append(server)

    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    previous = {number: signal.signal(number, arrived) for number in numbers}
    try:
        yield pass_on
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _translate_signal(number: int) -> int:
    """Return the signal as the server knows it: closing a terminal asks for an end, too."""
    return number if number == signal.SIGINT else signal.SIGTERM
