"""Generates handlers that call the server being migrated until its functions have been moved."""

from __future__ import annotations

import os
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.codegen.source.literals import format_comment, format_literal
from stubwright.pycode import Code, Name, fill, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stubwright.codegen.surface import HandlerMethod


_WIDTH: Final = 108
"""The maximum length of a comment line in a method, without indentation."""


@dataclass(frozen=True, slots=True)
class PythonServer:
    """A server object in a Python file.

    Attributes:
        file: The file, as an absolute path.
        root: The folder that its module is imported from.
        module: The module's name for `import`.
        name: The object's name in the module.
        loaded: The top-level packages and modules that the file's process has loaded.
        python: The command that starts its Python interpreter; None if both servers run in one process.
        is_fastmcp: True for a FastMCP server, false for an SDK server.
        requirement: The requirement in addition to the SDK; may be empty.
        notes: The changes for functions that take a `Context`, keyed by tool name.
        speaking: The names of tools that might log or ask questions.
        logs: True if any tool might log.
        asks: True if any tool might ask questions.
        left: Descriptions of the parts that are not migrated.
    """

    file: Path
    root: Path
    module: str
    name: str
    loaded: frozenset[str]
    python: tuple[str, ...] | None
    is_fastmcp: bool
    requirement: str
    notes: Mapping[str, tuple[str, ...]]
    speaking: frozenset[str]
    logs: bool
    asks: bool
    left: tuple[str, ...]

    def list_values(self, folder: Path) -> dict[str, Any]:
        """Return the template values for `old.py` in a project at `folder`."""
        try:
            root = Path(os.path.relpath(self.root, folder.resolve()))
        except ValueError:  # on another drive
            root = self.root
        return {
            "old_root": format_literal(root.as_posix()),
            "old_module": format_literal(self.module),
            "old_folder": format_literal(self.file.parent.relative_to(self.root).as_posix()),
            "old_name": Name(self.name),
            "old_python": None if self.python is None else format_literal(tuple(self.python)),
            "is_fastmcp": self.is_fastmcp,
            "speaking": format_literal(tuple(sorted(self.speaking))) if self.speaking else None,
            "speaker": fill("_CALLER.get()" if self.python is None else "self._speaker"),
            "asks": self.asks,
        }

    def describe_next_steps(self) -> str:
        """Return instructions for the manual steps."""
        if self.python is None:
            where = "in the new server's process, which needs the packages that the file imports"
        else:
            where = f"in a separate process, with {shlex.join(self.python)}"
        lines = "\n".join(f"  - {line}" for line in self.left)
        return f"""
The methods in handlers.py call the server in {self.file}, which stays in place and runs
{where}.
Move the functions into the methods one by one, and delete old.py after the last, before building an image.
Manual steps and differences:
{lines}
"""


@dataclass(frozen=True, slots=True)
class Body:
    """A method body: the result type, the statement, the comments before it, and the names to import."""

    result: Code
    statement: Code
    comments: tuple[Code, ...] = ()
    names: frozenset[str] = frozenset()


def make_body(method: HandlerMethod, old: PythonServer) -> Body:
    """Return a body that calls the old server."""
    arguments = [format_literal(method.key), *(parameter.name for parameter in method.parameters)]
    if method.role != "tool":  # the old functions for resources and prompts take no context
        call = fill("read" if method.role == "resource" else "prompt")
        return Body(method.result.text, fill("return await self._old.{}({})", call, join(", ", arguments[:-1])))
    has_schema = Name("Content") not in method.result.names
    if has_schema:
        arguments.append(method.result.text)
    return Body(
        fill("Reply[{}]", method.result.text),
        fill("return await self._old.{}({})", fill("call" if has_schema else "content"), join(", ", arguments)),
        tuple(_comment(old.notes.get(method.key, ()))),
        frozenset({"Reply"}),
    )


def _comment(notes: Iterable[str]) -> Iterator[Code]:
    for note in notes:
        yield from (format_comment(line) for line in textwrap.wrap(note, _WIDTH, subsequent_indent="  "))
