"""Packs the project's files into a bundle (`.mcpb`, manifest version 0.4) for desktop clients.

The client's uv installs the dependencies in `pyproject.toml`, so the bundle is the same on every system. Its bytes
depend only on its files.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any, Final

from stubwright.project import launch
from stubwright.project.variables import list_variables
from stubwright.publishing import server_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from stubwright import ir
    from stubwright.publishing.settings import Publication

_MANIFEST: Final = "manifest.json"
_VERSION: Final = "0.4"
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest timestamp that zip archives support, for reproducible bundles."""

_LEFT_OUT: Final = ("__pycache__", ".pyc", ".egg-info")


def make_manifest(manifest: ir.Manifest, publication: Publication, module: str) -> dict[str, Any]:
    """Return the bundle's manifest.

    Args:
        manifest: The server's manifest.
        publication: The metadata to publish.
        module: The generated package's `__main__.py`, relative to the project.
    """
    variables = list_variables(manifest.document)
    scopes = launch.include_scopes(manifest, publication.scopes)
    tools = [tool for tool in manifest.tools if scopes.issuperset(tool.policy.get("scopes") or ())]
    command = [publication.script] if publication.script else ["python", "-m", manifest.package]
    value = {
        "manifest_version": _VERSION,
        "name": publication.distribution,
        "display_name": manifest.server.get("title"),
        "version": publication.version,
        "description": server_json.describe(manifest, publication),
        "author": {"name": publication.author},
        "repository": {"type": "git", "url": publication.repository} if publication.repository else None,
        "homepage": manifest.server.get("websiteUrl"),
        "license": publication.license,
        "server": {
            "type": "uv",
            "entry_point": module,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", *command, *launch.grant(publication.scopes)],
                "env": {variable.name: f"${{user_config.{variable.name.lower()}}}" for variable in variables},
            },
        },
        "tools": [_name(tool.name, tool.description) for tool in tools],
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": publication.python}},
        "user_config": {
            variable.name.lower(): {
                "type": "string",
                "title": variable.name,
                "description": variable.description,
                "required": variable.default is None,
                "sensitive": variable.is_secret,
                **({"default": variable.default} if variable.default is not None else {}),
            }
            for variable in variables
        },
    }
    return {key: each for key, each in value.items() if each}


def _name(name: str, description: str | None) -> dict[str, str]:
    return {"name": name, **({"description": description} if description else {})}


def list_files(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the project files to bundle.

    Args:
        folder: The project's folder.
        names: The files and folders to include, relative to the project.
    """
    for name in names:
        path = folder / name
        paths = path.rglob("*") if path.is_dir() else [path]
        for each in paths:
            inside = each.relative_to(folder).as_posix()
            if each.is_file() and not each.is_symlink() and not any(word in inside for word in _LEFT_OUT):
                yield inside


def pack(folder: Path, files: Iterable[str], manifest: Mapping[str, Any]) -> bytes:
    """Return the bundle's bytes. Raises OSError if a file cannot be read."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, _MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2).encode() + b"\n")
        for name in sorted(set(files)):
            _add(archive, name, (folder / name).read_bytes())
    return packed.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16  # the upper 16 bits are the Unix mode
    info.create_system = 3  # the same bytes on all systems
    archive.writestr(info, data)
