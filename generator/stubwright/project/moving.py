"""The handlers of a server that moves here: each asks the old server, until its function is moved.

Takes what is known of the old server; gives the values for its module, and what stands in each method.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stubwright.codegen.source.literals import comment, literal
from stubwright.pycode import Code, Name, code, join

if TYPE_CHECKING:
    from stubwright.codegen.surface import HandlerMethod


@dataclass(frozen=True, slots=True)
class Old:
    """A server object in a Python file.

    Attributes:
        file: The file, as an absolute path.
        name: Its name there.
        python: The command that starts its Python; None if that is ours, so that both run in one process.
        is_fastmcp: Whether it is of FastMCP's own distribution, and not of the SDK.
        requirement: What has to be installed beside the SDK; may be empty.
        contexts: The names of the tools whose functions take a `Context`.
        left: What does not move, for people.
    """

    file: Path
    name: str
    python: tuple[str, ...] | None
    is_fastmcp: bool
    requirement: str
    contexts: frozenset[str]
    left: tuple[str, ...]

    def values(self, folder: Path) -> dict[str, Any]:
        """Return what the template of its module needs, in a project in `folder`."""
        try:
            file = Path(os.path.relpath(self.file, folder.resolve()))
        except ValueError:  # on another drive
            file = self.file
        return {
            "old_file": literal(file.as_posix()),
            "old_name": Name(self.name),
            "old_python": None if self.python is None else literal(tuple(self.python)),
            "is_fastmcp": self.is_fastmcp,
        }

    def next_steps(self) -> str:
        """Return what is left to do, for people."""
        if self.python is None:
            where = "in the process of the new server, which has to have installed what that file imports"
        else:
            where = f"in a process of its own, with {shlex.join(self.python)}"
        lines = "\n".join(f"  - {line}" for line in self.left)
        return f"""
The methods in handlers.py ask the server in {self.file}, which runs where it is,
{where}.
Move one function after another into the methods, and delete old.py after the last, before you build an image.

Left to do by hand, or different from now on:
{lines}
"""


@dataclass(frozen=True, slots=True)
class Body:
    """What stands in a method: its result's type, its statement, comments before it, and names to import for these."""

    result: Code
    statement: Code
    comments: tuple[Code, ...] = ()
    names: frozenset[str] = frozenset()


def body(method: HandlerMethod, old: Old) -> Body:
    """Return a body that asks the old server."""
    arguments = [literal(method.key), *(parameter.name for parameter in method.parameters)]
    if method.role != "tool":  # whose functions in the module take no context
        call = code("read" if method.role == "resource" else "prompt")
        return Body(method.result.text, code("return await self._old.{}({})", call, join(", ", arguments[:-1])))
    has_schema = Name("Content") not in method.result.names
    if has_schema:
        arguments.append(method.result.text)
    return Body(
        code("Reply[{}]", method.result.text),
        code("return await self._old.{}({})", code("call" if has_schema else "content"), join(", ", arguments)),
        (comment(_CONTEXT),) if method.key in old.contexts else (),
        frozenset({"Reply"}),
    )


_CONTEXT = "The function takes a Context: its progress is passed on, its log messages and questions are not."
