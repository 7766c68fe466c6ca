"""Reads versions for `diff`: files, files at a git revision, saved tool lists, and live servers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from stubwright import http, paths
from stubwright.commands.shared.console import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stubwright import ir
    from stubwright.compile.source import Document, Reader
    from stubwright.diagnostics import Diagnostic, Place
    from stubwright.importers.sources import Source

_GIT = "git:"
_FORGIVEN = frozenset({"SW240", "SW241", "SW242"})
"""Errors in examples, which do not affect comparisons."""


@dataclass(frozen=True, slots=True)
class Version:
    """The old or the new version of a manifest.

    Attributes:
        name: The version's name in messages.
        manifest: The manifest; None if it is invalid.
        documents: The source documents that diagnostics refer to.
        diagnostics: The compiler's diagnostics.
        entry: The entry file's path.
        is_listed: True if the manifest comes from a server's lists or a contract, which describe only the wire format.
        is_sorted: True if its entries are not in the server's order.
        notes: Notes on importing a saved list.
    """

    name: str
    manifest: ir.Manifest | None
    documents: Mapping[str, Document] = field(default_factory=dict)
    diagnostics: Sequence[Diagnostic] = ()
    entry: str = ""
    is_listed: bool = False
    is_sorted: bool = False
    notes: Sequence[str] = ()

    @property
    def values(self) -> Mapping[str, Any]:
        """The parsed entry file."""
        document = self.documents.get(self.entry)
        return document.value if document is not None and isinstance(document.value, dict) else {}

    def is_foreign(self, place: Place | None) -> bool:
        """Return whether the text at a location comes from a server, a saved list, or an imported file."""
        from stubwright.compile.syntax import yamlwriter

        document = None if place is None else self.documents.get(place.file)
        return self.is_listed or (document is not None and yamlwriter.is_imported(document.text))


UNNAMED: Final = "server"
"""The server name for a saved list that does not include it; constant, so that comparisons do not report it."""


class VersionError(Exception):
    """A version cannot be read; the message explains why."""


def read_project(revision: str) -> list[tuple[Version, Version]]:
    """Return each project manifest at `git:REV` and in the working tree.

    Raises:
        VersionError: A version cannot be read.
        UsageError: No project in this folder lists manifests.
    """
    from stubwright.project import config

    project, _ = config.find()
    if project is None or not project.manifests:
        raise UsageError(
            f"`{revision}` needs a path: without one, it compares the manifests in [tool.stubwright], which lists none"
        )
    return [(read(revision, path), read(path, revision)) for path in project.manifests]


def make_listed(manifest: ir.Manifest, formats: ir.Formats) -> ir.Manifest:
    """Return a manifest with the schemas that its server lists; unlisted output schemas are omitted."""
    manifest = replace(
        manifest,
        formats=formats,
        tools=tuple(map(_drop_unlisted_schema, manifest.tools)),
        resources=(*manifest.resources, *_list_skill_files(manifest)),
        document={key: value for key, value in manifest.document.items() if key != "skills"},
    )
    if manifest.refs == "bundled" and not manifest.splits_types:
        return manifest

    def make_sent(schema: ir.Schema, wire: Mapping[str, Any]) -> ir.Schema:
        return replace(schema, wire=wire, shared={}, own=None)

    tools = tuple(
        replace(
            tool,
            input=make_sent(tool.sent, tool.definition["inputSchema"]),
            bound=frozenset(),
            output=None if tool.output is None else make_sent(tool.output, tool.definition["outputSchema"]),
        )
        for tool in manifest.tools
    )
    return replace(manifest, tools=tools)


def _list_skill_files(manifest: ir.Manifest) -> Iterator[ir.Primitive]:
    from stubwright import ir, naming
    from stubwright.diagnostics import Place
    from stubwright_runtime.mcp import vocabulary

    for entry in manifest.skill_resources:
        yield ir.Primitive(
            section=vocabulary.RESOURCES,
            key=entry["uri"],
            names=naming.name_primitive(vocabulary.RESOURCES.noun, entry["name"]),
            definition=entry,
            handled=False,
            arguments=None,
            completed=(),
            completes=False,
            questions=(),
            deprecated=None,
            place=Place(manifest.source, ("skills",)),
        )


def _drop_unlisted_schema(tool: ir.Tool) -> ir.Tool:
    return tool if "outputSchema" in tool.listed else replace(tool, definition=tool.listed, output=None)


def is_revision(given: str) -> bool:
    """Return whether an argument is a git revision without a file."""
    return given.startswith(_GIT) and ":" not in given.removeprefix(_GIT)


def read(given: str, other: str) -> Version:
    """Read the version that a command-line argument names.

    Args:
        given: A path, `git:REV`, `git:REV:PATH`, or the URL of a live server.
        other: The other argument, which supplies the path for `git:REV`.

    Raises:
        VersionError: The version cannot be read.
        UsageError: The argument does not identify exactly one file.
    """
    if given.startswith(_GIT):
        return _read_revision(given, other)
    if http.is_url(given):
        from argparse import Namespace

        from stubwright.commands.shared import logins

        return list_live(logins.make_endpoint(given, {}, Namespace()))
    from stubwright.project.files import disk

    return _read_file(given, paths.normalize(given), disk.Disk())


def list_live(source: Source) -> Version:
    """Return the version for a live server's current lists.

    Raises:
        VersionError: The server does not respond.
    """
    from stubwright.importers import acceptance, servers
    from stubwright.importers import live as live_servers

    try:
        result = servers.make_manifest(live_servers.read(source), name=None, default_name="server")
    except (live_servers.UnreachableError, acceptance.UnfixableError) as error:
        raise VersionError(str(error)) from error
    return replace(make_version(source.label, result.manifest), is_listed=True)


def with_texts(path: str, texts: Mapping[str, str]) -> Version:
    """Return a version of a manifest on disk in which `texts`, keyed by path, replace the contents of some files."""
    from stubwright.project.files import disk

    return _compile(f"{path}, refreshed", path, _OverlayReader(disk.Disk(), texts))


def make_version(name: str, value: Mapping[str, Any]) -> Version:
    """Return the version for a manifest value that has no file."""
    return _compile(name, "server.json", _InMemoryFile("server.json", json.dumps(value, indent=2).encode()))


def _read_revision(given: str, other: str) -> Version:
    from stubwright.project import git

    name, _, path = given.removeprefix(_GIT).partition(":")
    if not path and other.startswith(_GIT):
        path = other.removeprefix(_GIT).partition(":")[2]
    path = paths.use_slashes(path)
    beside = "" if path or other.startswith((_GIT, "http://", "https://")) else paths.use_slashes(other)
    if not path and not beside:
        raise UsageError(f"`{given}` has no path, and neither does the other argument; write git:REV:PATH")
    try:
        reader = git.read_revision(name)
        version = _read_file(given, beside or reader.resolve_path(path), reader)
    except (git.RevisionError, OSError) as error:
        raise VersionError(str(error)) from error
    fix = "check the path: it is relative to the repository root, or to the working folder as `./PATH`"
    is_missing = (
        path
        and [diagnostic.code for diagnostic in version.diagnostics] == ["SW001"]
        and version.diagnostics[0].at is None
    )
    if is_missing:
        return replace(version, diagnostics=[replace(version.diagnostics[0], help=fix)])
    return version if version.manifest is not None else _rename_files(version, f"{_GIT}{name}", reader.find_path)


def _rename_files(version: Version, revision: str, find_path: Callable[[str], str]) -> Version:
    """Return a copy of `version` in which documents and diagnostics use file names such as `git:REV:PATH`."""

    def name_file(path: str) -> str:
        return f"{revision}:{find_path(path)}"

    return replace(
        version,
        documents={
            name_file(path): replace(document, path=name_file(path)) for path, document in version.documents.items()
        },
        diagnostics=[
            diagnostic
            if diagnostic.at is None
            else replace(diagnostic, at=replace(diagnostic.at, file=name_file(diagnostic.at.file)))
            for diagnostic in version.diagnostics
        ],
    )


def _read_file(name: str, path: str, reader: Reader) -> Version:
    from stubwright.compile.syntax import yamlwriter

    if path.lower().endswith(".json"):
        notes: list[str] = []
        manifest_data = _import_tools(path, reader, notes)
        if manifest_data is not None:
            version = _compile(name, path, _InMemoryFile(path, manifest_data))
            return replace(version, is_listed=True, notes=tuple(notes))
    version = _compile(name, path, reader)
    entry = version.documents.get(version.entry)
    is_contract = entry is not None and yamlwriter.is_locked(entry.text)
    return replace(version, is_listed=is_contract, is_sorted=is_contract)


def _import_tools(path: str, reader: Reader, notes: list[str]) -> bytes | None:
    """Convert a saved tool list to a manifest, and append to `notes`. Return None if the file is not a tool list."""
    from stubwright.compile.structure import list_manifest_keys
    from stubwright.importers import tools

    try:
        text = reader.read(path).decode("utf-8-sig")
        value = json.loads(text)
        if isinstance(value, dict) and list_manifest_keys() & value.keys() - {"tools"}:
            return None
        entries, info = tools.read(text, path, notes)
    except (OSError, ValueError, RecursionError):
        return None  # errors are reported when the file is read as a manifest
    draft = tools.make_manifest(entries, name=info.get("name") or UNNAMED, info=info)
    notes += draft.notes
    return json.dumps(draft.manifest, indent=2).encode()


@dataclass(frozen=True, slots=True)
class _OverlayReader:
    beneath: Reader
    texts: Mapping[str, str]

    def read(self, path: str) -> bytes:
        return self.texts[path].encode() if path in self.texts else self.beneath.read(path)

    def glob(self, folder: str, pattern: str) -> list[str]:
        return self.beneath.glob(folder, pattern)

    def is_within(self, path: str, folder: str) -> bool:
        return self.beneath.is_within(path, folder)


@dataclass(frozen=True, slots=True)
class _InMemoryFile:
    path: str
    data: bytes

    def read(self, path: str) -> bytes:
        if path != self.path:
            raise FileNotFoundError(2, "no such file", path)
        return self.data

    def glob(self, folder: str, pattern: str) -> list[str]:  # noqa: ARG002 - a Reader's parameters
        return []

    def is_within(self, path: str, folder: str) -> bool:  # noqa: ARG002 - a Reader's parameters
        return True


def _compile(name: str, path: str, reader: Reader) -> Version:
    import posixpath

    from stubwright.compile import pipeline

    checked = pipeline.compile_manifest(path, reader, tolerated=_FORGIVEN, errors_only=True)
    errors = [diagnostic for diagnostic in checked.diagnostics if diagnostic.severity == "error"]
    # An imported manifest has no file, so its documents are only used to show its diagnostics.
    is_made = isinstance(reader, _InMemoryFile) and checked.manifest is not None
    return Version(name, checked.manifest, {} if is_made else checked.documents, errors, posixpath.normpath(path))
