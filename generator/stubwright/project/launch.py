"""The command that starts a generated server: the interpreter, its arguments, and the folders of modules."""

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
        handlers: `module:name` of the handwritten class; None if there is none.
        folders: The folders of modules, as absolute paths.
        scopes: The scopes of the local user.
    """

    python: str
    package: str
    handlers: str | None
    folders: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the interpreter.

        With `-P`, files in the client's choice of working folder do not hide modules of the server.
        """
        named = ("--handlers", self.handlers) if self.handlers is not None else ()
        return ("-P", "-m", self.package, *named, *grant(self.scopes))

    def make_environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return `own` with the folders of this launch at the start of `PYTHONPATH`."""
        before = [own[_PATH]] if own.get(_PATH) else []
        return {_PATH: os.pathsep.join([*self.folders, *before]), **{k: v for k, v in own.items() if k != _PATH}}


def prepare(manifest: ir.Manifest, target: Target, *, handlers: str | None = None, python: str | None = None) -> Launch:
    """Return the command that starts the server of a manifest.

    Args:
        manifest: The manifest.
        target: The folder of its package, and the folders of handwritten modules.
        handlers: `module:name` in place of the manifest's.
        python: The interpreter; by default the current one. Links are not resolved, since the interpreter of an
            environment is a link.
    """
    folders = [target.folder, *(Path(folder) for folder in target.handlers)]
    existing = dict.fromkeys(str(Path(os.path.abspath(folder))) for folder in folders if folder.is_dir())  # noqa: PTH100
    interpreter = os.path.abspath(python or sys.executable)  # noqa: PTH100 - `resolve` would follow the link
    return Launch(interpreter, manifest.package, handlers or manifest.handlers, tuple(existing))


def grant(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the options that grant scopes to the local user."""
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
        granted: The user's scopes, which may include others.
    """
    reached = include_scopes(manifest, granted)
    needed = [
        *(tool.policy.get("scopes") or () for tool in manifest.tools),
        *(primitive.scopes for primitives in manifest.primitives.values() for primitive in primitives),
    ]
    return tuple(dict.fromkeys(scope for scopes in needed for scope in scopes if scope not in reached))


def is_generated(manifest: ir.Manifest, target: Target) -> bool:
    """Return whether the server of a manifest has been generated."""
    return inside.find_kind(target.folder / manifest.package / "__main__.py") == "file"
