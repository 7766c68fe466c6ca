"""A mock server for a manifest: the real generated server, with handlers that need no logic.

Takes a lowered manifest; compiles it into a temporary folder, runs it from there, and takes the folder away again.
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

from stubwright.codegen import surface
from stubwright.codegen.source.literals import literal
from stubwright.compile import pipeline
from stubwright.project.files import disk

if TYPE_CHECKING:
    from stubwright import ir

_LEFT_OUT: Final = frozenset({"auth", "bind", "handles", "http", "policy"})
"""Our keys that do not apply to a mock: it has no limits, needs no authorization, and calls no API."""

_STOPPING: Final = ("SIGINT", "SIGTERM", "SIGHUP")


def serve(manifest: ir.Manifest, options: Sequence[str], *, seed: int) -> int:
    """Serve until the client leaves or a signal comes.

    Args:
        manifest: The lowered manifest.
        options: For the package's own command, such as `--http`.
        seed: What made answers depend on.

    Returns:
        The exit status.

    Raises:
        OSError: The temporary folder cannot be written.
    """
    with _forward_signals() as pass_on, tempfile.TemporaryDirectory(prefix="stubwright-mock-") as name:
        folder = Path(name)
        mocked = _remove_policies(manifest)
        _write(folder, mocked, seed)
        handlers = f"{mocked.package}.mock:HANDLERS"
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
    for artifact in pipeline.generate(manifest):
        disk.write(folder / artifact.path, artifact.data)
    methods = {method.name: (method.role, method.key) for method in surface.handler_methods(manifest)}
    disk.create(
        folder / manifest.package / "mock.py",
        "from stubwright.mock.handlers import make_handlers\nfrom .registry import TOOLS\nHANDLERS ="
        f" make_handlers(TOOLS, {literal(methods)}, seed={seed:d},"
        f" in_json={literal(_find_json_resources(manifest))})\n",
    )


def _find_json_resources(manifest: ir.Manifest) -> list[str]:
    """Return the resources and resource templates whose MIME type is one of JSON (RFC 6839, 3.1)."""
    media_types = [
        (primitive.key, str(primitive.definition.get("mimeType", "")).partition(";")[0].strip().lower())
        for primitive in (*manifest.resources, *manifest.templates)
    ]
    return [key for key, kind in media_types if kind == "application/json" or kind.endswith("+json")]


@contextmanager
def _forward_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
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
