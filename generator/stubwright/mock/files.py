"""Collects a package's files for a mock: its `manifest.json`, and the contents of resources and prompts.

The files come from the compiler or from the user's own cache, never from the checkout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stubwright.mock.names import MANIFEST

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.project.build import Target

_FILES: Final = "files"
_SERVER: Final = "server.py"
"""A module that only packages with a server contain. Other packages have no content files."""


@dataclass(frozen=True, slots=True)
class MockFiles:
    """A server's import package, and the package's files, keyed by path."""

    package: str
    files: Mapping[str, bytes]


def make_files(manifest: ir.Manifest) -> MockFiles:
    """Return the files for a lowered manifest."""
    from pydantic_core import to_json

    return MockFiles(manifest.package, {**manifest.files, MANIFEST: to_json(manifest.document)})


def find_generated(manifest: str, target: Target) -> MockFiles | None:
    """Return a manifest's generated files, or None if the manifest must be compiled first.

    Args:
        manifest: The manifest's path.
        target: The location of the generated package.
    """
    from stubwright.project import freshness  # imported here, since commands without a project do not need the cache
    from stubwright.project.files import layout
    from stubwright.project.files.disk import Disk

    name = layout.make_relative(manifest, target.folder)
    recalled = freshness.recall(Disk(), target.folder, name, target.option, _is_needed)
    if recalled is None or not any(path.endswith(f"/{_SERVER}") for path in recalled):
        return None
    package = next(iter(recalled)).partition("/")[0]
    return MockFiles(package, {path.partition("/")[2]: data for path, data in recalled.items()})


def _is_needed(path: str) -> bool:
    _, _, path = path.partition("/")
    return path in (MANIFEST, _SERVER) or path.startswith(f"{_FILES}/")
