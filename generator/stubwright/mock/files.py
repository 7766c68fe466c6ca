"""Collects the files of a package for a mock: its `manifest.json`, and the contents of resources and prompts.

It trusts only the cache of the user's last run, not the checkout.
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
"""The module that only packages with a server have; other packages have no files of contents."""


@dataclass(frozen=True, slots=True)
class MockFiles:
    """The import package of a server, and its files by path."""

    package: str
    files: Mapping[str, bytes]


def make_files(manifest: ir.Manifest) -> MockFiles:
    """Return the files of a lowered manifest."""
    from pydantic_core import to_json

    return MockFiles(manifest.package, {**manifest.files, MANIFEST: to_json(manifest.document)})


def find_generated(manifest: str, target: Target) -> MockFiles | None:
    """Return the generated files of a manifest; None if it must be compiled.

    Args:
        manifest: The manifest's path.
        target: The target of its package.
    """
    from stubwright.project import freshness  # what answers without a project needs no cache of one
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
