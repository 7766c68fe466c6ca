"""The start of a generated server: the interpreter, the words after it, and the folders of its modules."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stubwright.project.files import inside

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.project.build import Target

_PATH = "PYTHONPATH"


@dataclass(frozen=True, slots=True)
class Launch:
    """A server's command.

    Attributes:
        python: The interpreter, as an absolute path.
        package: The generated package.
        handlers: `module:name` of the handwritten half; None if there is none.
        folders: The folders in which modules are looked for, as absolute paths.
        scopes: The scopes of the local user.
    """

    python: str
    package: str
    handlers: str | None
    folders: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the interpreter.

        With `-P`, since a client starts a server in its own folder choice: neither that folder nor what is in it
        hides a module of the server.
        """
        named = ("--handlers", self.handlers) if self.handlers is not None else ()
        return ("-P", "-m", self.package, *named, *grant(self.scopes))

    def make_environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the variables to set: `own`, with the folders of this launch first in `PYTHONPATH`."""
        before = [own[_PATH]] if own.get(_PATH) else []
        return {_PATH: os.pathsep.join([*self.folders, *before]), **{k: v for k, v in own.items() if k != _PATH}}


def prepare(manifest: ir.Manifest, target: Target, *, handlers: str | None = None, python: str | None = None) -> Launch:
    """Return the command that starts the server of a manifest.

    Args:
        manifest: The manifest.
        target: The folder of its package, and the folders of handwritten modules.
        handlers: `module:name` in place of the manifest's.
        python: The interpreter; by default the current one. A link is not resolved, since an environment's interpreter
            is a link.
    """
    folders = [target.folder, *(Path(folder) for folder in target.handlers)]
    there = dict.fromkeys(str(Path(os.path.abspath(folder))) for folder in folders if folder.is_dir())  # noqa: PTH100
    interpreter = os.path.abspath(python or sys.executable)  # noqa: PTH100 - `resolve` would follow the link
    return Launch(interpreter, manifest.package, handlers or manifest.handlers, tuple(there))


def grant(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the words that give the local user scopes."""
    return tuple(word for scope in scopes for word in ("--scope", scope))


def include_scopes(manifest: ir.Manifest, granted: Sequence[str]) -> frozenset[str]:
    """Return a user's scopes, with all scopes that they include."""
    including: Mapping[str, Sequence[str]] = (manifest.document.get("auth") or {}).get("scopes") or {}
    reached = set(granted)
    waiting = [*reached]
    while waiting:
        included = set(including.get(waiting.pop(), ())) - reached
        reached |= included
        waiting += included
    return frozenset(reached)


def find_lacking_scopes(manifest: ir.Manifest, granted: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes that parts of the server need and the local user lacks.

    Args:
        manifest: The manifest.
        granted: The scopes that the user is given, which may include others.
    """
    reached = include_scopes(manifest, granted)
    needed = [
        *(tool.policy.get("scopes") or () for tool in manifest.tools),
        *(primitive.scopes for primitives in manifest.primitives.values() for primitive in primitives),
    ]
    return tuple(dict.fromkeys(scope for scopes in needed for scope in scopes if scope not in reached))


def is_generated(manifest: ir.Manifest, target: Target) -> bool:
    """Return whether there is a package with a server to start."""
    return inside.find_kind(target.folder / manifest.package / "__main__.py") == "file"
