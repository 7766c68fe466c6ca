"""The command that starts a generated server: the interpreter, its arguments, and the module folders."""

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
        handlers: `module:name` of the handwritten class, if any.
        folders: The module folders, as absolute paths.
        scopes: The local user's scopes.
    """

    python: str
    package: str
    handlers: str | None
    folders: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The interpreter's arguments.

        With `-P`, files in the working folder, which the client chooses, cannot hide the server's modules.
        """
        named = ("--handlers", self.handlers) if self.handlers is not None else ()
        return ("-P", "-m", self.package, *named, *grant(self.scopes))

    def make_environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return `own` with this launch's folders at the start of `PYTHONPATH`."""
        before = [own[_PATH]] if own.get(_PATH) else []
        return {_PATH: os.pathsep.join([*self.folders, *before]), **{k: v for k, v in own.items() if k != _PATH}}


def prepare(manifest: ir.Manifest, target: Target, *, handlers: str | None = None, python: str | None = None) -> Launch:
    """Return the command that starts a manifest's server.

    Args:
        manifest: The server's manifest.
        target: The folder with its package, and the folders with handwritten modules.
        handlers: `module:name`, overriding the manifest's.
        python: The interpreter; by default the current one. Links are not resolved, because the interpreter in a
            virtual environment is a link.
    """
    folders = [target.folder, *(Path(folder) for folder in target.handlers)]
    existing = dict.fromkeys(str(Path(os.path.abspath(folder))) for folder in folders if folder.is_dir())  # noqa: PTH100
    interpreter = os.path.abspath(python or sys.executable)  # noqa: PTH100 - `resolve` would follow the link
    return Launch(interpreter, manifest.package, handlers or manifest.handlers, tuple(existing))


def grant(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the options that grant scopes to the local user."""
    return tuple(word for scope in scopes for word in ("--scope", scope))


def include_scopes(manifest: ir.Manifest, granted: Sequence[str]) -> frozenset[str]:
    """Return a user's scopes, with all scopes that they imply."""
    including: Mapping[str, Sequence[str]] = (manifest.document.get("auth") or {}).get("scopes") or {}
    reached = set(granted)
    waiting = [*reached]
    while waiting:
        included = set(including.get(waiting.pop(), ())) - reached
        reached |= included
        waiting += included
    return frozenset(reached)


def find_lacking_scopes(manifest: ir.Manifest, granted: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes that the server needs and the local user lacks.

    Args:
        manifest: The server's manifest.
        granted: The user's scopes, which may imply others.
    """
    reached = include_scopes(manifest, granted)
    needed = [
        *(tool.policy.get("scopes") or () for tool in manifest.tools),
        *(primitive.scopes for primitives in manifest.primitives.values() for primitive in primitives),
    ]
    return tuple(dict.fromkeys(scope for scopes in needed for scope in scopes if scope not in reached))


def is_generated(manifest: ir.Manifest, target: Target) -> bool:
    """Return whether a manifest's server has been generated."""
    return inside.find_kind(target.folder / manifest.package / "__main__.py") == "file"
