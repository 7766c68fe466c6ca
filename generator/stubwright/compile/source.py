"""Loads a manifest's files: the entry, its includes, attached files, skills, and files referenced by schemas."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias
from urllib.parse import quote, unquote

from stubwright import paths
from stubwright.compile import structure
from stubwright.compile.skills import folders
from stubwright.compile.syntax import jsontext, positions, shorthand, yamltext
from stubwright.compile.syntax.positions import Lines, Node, Problem
from stubwright.diagnostics import Diagnostic, Place, Pointer, Span
from stubwright.diagnostics.suggestions import find_nearest
from stubwright.jsonschema import dialects, locations
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stubwright.ir import Json

MAX_FRAGMENTS = 10_000
"""Maximum number of included files."""

MAX_INCLUDE_DEPTH = 50
"""Maximum nesting depth of includes."""

Kind: TypeAlias = Literal["manifest", "tools-list"]

_GLOB = re.compile(r"[*?\[]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a single letter is a Windows drive, not a scheme
_NOT_PATH = re.compile(r"[\x00-\x1f]")
_FILE_REFERENCE = re.compile(r"\$ref[\"']?\s*:\s*[\"']?(?![\"'#\s])")
_SHARED_REFERENCE = re.compile(r"\$ref[\"']?\s*:\s*[\"']?(?P<file>[^\"'#\s:]*)#/schemas/")
_CONFLICT = re.compile(r"^(?:<{7}|>{7}) .*$", re.MULTILINE)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UNESCAPED = "/-._~!$&'()*+,;=:@"
"""Characters that need no escaping in a URI path (RFC 3986, section 3.3)."""

_BINARY = re.compile(r"(image/(?!svg)|audio/|video/|font/|application/(octet-stream|pdf|zip|gzip))", re.IGNORECASE)
"""MIME types that are binary even if the bytes are valid UTF-8."""


class Reader(Protocol):
    """Reads files. Paths are as users write them, separated by `/`."""

    def read(self, path: str) -> bytes:
        """Return a file's contents. Raises OSError."""
        ...

    def glob(self, folder: str, pattern: str) -> list[str]:
        """Return the sorted paths of matching files below `folder` (empty for the current directory)."""
        ...

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is below `folder` (empty for the current directory) after resolving links."""
        ...


@dataclass(frozen=True)
class Document:
    """A parsed file. `value` is None if the text is invalid.

    Locations are relative to `value`, after its shorthand is expanded. `root` is the pointer to `value`, for example
    `result` in a saved JSON-RPC response. `origins` maps expanded locations to written ones.
    """

    path: str
    text: str
    value: Json
    root: Pointer = ()
    origins: Mapping[Pointer, Pointer] = field(default_factory=dict)

    def find_span(self, place: Place) -> Span:
        """Return the span of a location, or of its nearest existing ancestor."""
        written = shorthand.find_written(self.origins, place.pointer)
        absolute = Place(self.path, (*self.root, *written), place.on)
        start, end = positions.locate(self._tree, absolute)
        if place.part:
            start, end = positions.locate_part(self.text, start, end, place.part)
        return self.lines.find_span(self.path, start, end)

    @cached_property
    def lines(self) -> Lines:
        """The lines of the text."""
        return Lines(self.text)

    @cached_property
    def _tree(self) -> Node:
        return jsontext.parse_tree(self.text)[0] if _is_json(self.path) else yamltext.parse_tree(self.text)


@dataclass(frozen=True, slots=True)
class Fragment:
    """An included file. `prefix` is prepended to the names in the file."""

    path: str
    prefix: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class File:
    """A file to copy into the package. `path` is relative to the manifest's directory and uses `/`."""

    path: str
    data: bytes

    @property
    def packed(self) -> str:
        """The file's path inside the package."""
        return f"files/{self.path}"

    def is_text(self, mime_type: str) -> bool:
        """Return whether the file is sent as text. `mime_type` may be empty."""
        if b"\0" in self.data or _BINARY.match(mime_type):
            return False
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: a folder with a `SKILL.md`.

    Attributes:
        path: The skill's path in URIs.
        place: The entry in `skills` that includes the skill.
        document: The parsed `SKILL.md`, with the frontmatter as the value.
        files: The skill's files, keyed by path relative to the skill's folder.
    """

    path: str
    place: Place
    document: Document
    files: Mapping[str, File]

    @property
    def name(self) -> str:
        """The name in the frontmatter, or an empty string."""
        return str(self.document.value.get("name", ""))

    @property
    def uri(self) -> str:
        """The URI of `SKILL.md`, which identifies the skill."""
        return self.make_uri(folders.MANIFEST)

    @property
    def uris(self) -> Sequence[str]:
        """The URIs of the skill's files."""
        return [self.make_uri(path) for path in self.files]

    def make_uri(self, path: str) -> str:
        """Return the URI of one of the skill's files (SEP-2640, "Resource Mapping")."""
        return f"{vocabulary.SKILLS}{quote(f'{self.path}/{path}', safe=_UNESCAPED)}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """All files that make up a manifest.

    Attributes:
        entry: The path of the entry file.
        documents: All parsed files, keyed by path.
        fragments: The entry and its includes, depth-first, in `include` order.
        files: Attached files, keyed by the location of their `file` key.
        skills: All skills in the folders under `skills`.
        described: The parsed `SKILL.md` files, keyed by path.
    """

    entry: str
    documents: Mapping[str, Document]
    fragments: tuple[Fragment, ...]
    files: Mapping[Place, File]
    skills: tuple[Skill, ...] = ()
    described: Mapping[str, Document] = field(default_factory=dict)

    @property
    def shown(self) -> Mapping[str, Document]:
        """All files that a diagnostic can point to."""
        return {**self.described, **self.documents}


def load(entry: str, reader: Reader) -> tuple[Bundle | None, list[Diagnostic]]:
    """Load a manifest: the entry file and all files that it needs.

    Returns:
            The bundle and the diagnostics. The bundle is None if the entry cannot be read. If another file is invalid,
            use
        the bundle only to show locations.
    """
    loader = _Loader(posixpath.normpath(entry), reader)
    loader.include(loader.entry, "", (), None)
    loader.follow()
    if loader.entry not in loader.documents:
        return None, loader.found
    files = dict(loader.read_attached())
    skills = tuple(loader.read_skills())
    fragments = tuple(loader.fragments)
    return Bundle(loader.entry, loader.documents, fragments, files, skills, loader.described), loader.found


class _Loader:
    def __init__(self, entry: str, reader: Reader) -> None:
        self.entry = entry
        self.documents: dict[str, Document] = {}
        self.described: dict[str, Document] = {}
        self.fragments: list[Fragment] = []
        self.found: list[Diagnostic] = []
        self._reader = reader
        self._unreadable: set[str] = set()
        self._included: set[tuple[str, str]] = set()
        self._is_full = False

    def include(self, path: str, prefix: str, chain: tuple[str, ...], at: Place | None) -> None:
        """Load a file and the files that it includes. `chain` lists the including files, from the entry down."""
        if path in chain:
            circle = " → ".join(f"`{step}`" for step in (*chain[chain.index(path) :], path))
            self._report("SW013", f"files include each other in a cycle: {circle}", at, "remove one of the includes")
            return
        if (path, prefix) in self._included:
            fix = "include it once, or use another `prefix` for one"
            self._report("SW014", f"`{path}` is included twice with the same prefix", at, fix)
            return
        fix = "include each file only once, in the manifest itself"
        if len(chain) > MAX_INCLUDE_DEPTH:
            self._report("SW015", f"includes are nested more than {MAX_INCLUDE_DEPTH} levels deep", at, fix)
            return
        if len(self._included) == MAX_FRAGMENTS:
            if not self._is_full:
                self._report("SW015", f"more than {MAX_FRAGMENTS:,} files are included up to here", at, fix)
            self._is_full = True
            return
        self._included.add((path, prefix))
        document = self._read(path, at)
        if document is None:
            return
        kind = _find_kind(document) if chain else "manifest"
        self.fragments.append(Fragment(path, prefix, kind))
        if kind == "manifest":
            for place, pattern, own in _list_includes(document):
                for target in self._expand_pattern(document.path, pattern, place):
                    self.include(target, prefix + own, (*chain, path), place)

    def follow(self) -> None:
        pending = list(self.documents.values())
        for document in pending:
            for pointer, reference, lenient in _list_file_references(document):
                path = self._resolve_path(document.path, unquote(reference.partition("#")[0]))
                if path is None or path in self.documents or _SCHEME.match(reference):
                    continue
                referenced = self._read(path, Place(document.path, pointer), lenient=lenient)
                if referenced is not None:
                    pending.append(referenced)

    def read_attached(self) -> Iterator[tuple[Place, File]]:
        seen_paths: dict[str, str] = {}
        for document in self.documents.values():
            for place, name in _list_attached(document):
                path = self._resolve_name(document.path, name, place, "file")
                if path is not None:
                    self._check_portable(name, path, seen_paths, place)
                    if self._check_link(path, name, place) and (file := self._read_file(path, place)) is not None:
                        yield place, file

    def read_skills(self) -> Iterator[Skill]:
        """Yield the valid skills in or below the folders under `skills`. Report invalid skills."""
        seen_paths: dict[str, str] = {}
        read: dict[str, File | None] = {}
        for place, name in _list_skill_folders(self.documents[self.entry]):
            folder = self._resolve_name(self.entry, name, place, "folder")
            if folder is None or not self._check_link(folder, name, place):
                continue
            try:
                groups = folders.group(folder, self._reader.glob(folder, "**/*"))
            except (OSError, ValueError) as error:
                self._report("SW275", f"`{name}` cannot be read as a folder: {error}", place)
                continue
            if not groups:
                fix = "check the path, which is relative to this file: each skill is a folder with a `SKILL.md`"
                self._report("SW275", f"no `{folders.MANIFEST}` found in or below `{name}`", place, fix)
            for root, listed in groups.items():
                skill = self._read_skill(folder, root, listed, place, (seen_paths, read))
                if skill is not None:
                    yield skill

    def _read_skill(
        self,
        folder: str,
        root: str,
        listed: Sequence[str],
        place: Place,
        known: tuple[dict[str, str], dict[str, File | None]],
    ) -> Skill | None:
        """Read one skill.

        Args:
            folder: The folder, as listed in `skills`.
            root: The folder that contains the skill's `SKILL.md`.
            listed: The paths of the skill's files.
            place: The location of the entry in `skills`.
            known: The paths and files of skills read before. Paths are keyed by lowercase form, files by path (None if
                invalid).
        """
        path = posixpath.basename(root) if root == folder else posixpath.relpath(root, folder or ".")
        if not path:
            fix = "move it to its own folder, named after the skill"
            self._report("SW275", f"`{root or '.'}` itself cannot be a skill", place, fix)
            return None
        if len(listed) > folders.MAX_FILES:
            message = f"the skill `{root}` has {len(listed):,} files, and hosts accept at most {folders.MAX_FILES}"
            self._report("SW275", message, place, "split it, or remove files that it does not need")
            return None
        seen_paths, read = known
        files: dict[str, File] = {}
        size = 0
        for each in listed:
            if each not in read:
                read[each] = self._read_skill_file(each, place, seen_paths)
            file = read[each]
            if file is None:
                return None
            files[posixpath.relpath(each, root or ".")] = file
            size += len(file.data)
            if size > folders.MAX_BYTES:
                most = folders.MAX_BYTES // 1024**2
                message = f"the skill `{root}` is larger than {most} MiB, the maximum that hosts accept"
                self._report("SW275", message, place, "split it, or remove files that it does not need")
                return None
        at = posixpath.join(root, folders.MANIFEST)
        described, problems = read_document(at, files[folders.MANIFEST].data, folders.parse, "a `SKILL.md` with text")
        self.described[at] = described
        self.found += [replace(each, help=folders.FIX) if each.code == "SW003" else each for each in problems]
        if not problems and not isinstance(described.value, dict):
            fix = "write `name:` and `description:` between the `---` lines"
            self._report("SW276", "the frontmatter is not a mapping", Place(at), fix)
        return Skill(path, place, described, files) if isinstance(described.value, dict) else None

    def _read_skill_file(self, path: str, place: Place, seen_paths: dict[str, str]) -> File | None:
        try:
            path.encode()  # its URI is UTF-8
        except UnicodeEncodeError:
            self._report("SW001", f"the name of `{path!r}` is not UTF-8", place, "rename the file or its folder")
            return None
        if not self._reader.is_within(path, posixpath.dirname(path)):
            fix = "replace the link with a copy of the file: skills are distributed on their own"
            self._report("SW012", f"`{path}` links to a file outside its folder", place, fix)
            return None
        self._check_portable(path, path, seen_paths, place)
        return self._read_file(path, place)

    def _find_near(self, path: str) -> str | None:
        folder = posixpath.dirname(path) or "."
        files = [*self._reader.glob(folder, "*.yaml"), *self._reader.glob(folder, "*.yml")]
        return find_nearest(path, files)

    def _read_file(self, path: str, place: Place) -> File | None:
        try:
            data = self._reader.read(path)
        except OSError as error:
            self.found.append(report_unreadable(path, error, place))
            return None
        return File(posixpath.relpath(path, posixpath.dirname(self.entry) or "."), data)

    def _check_portable(self, name: str, path: str, seen_paths: dict[str, str], at: Place) -> None:
        """Report a file name that is invalid on some operating system, or that collides with an earlier file name.

        Args:
            name: The path as written.
            path: The resolved path.
            seen_paths: Earlier paths, keyed by lowercase form. The call adds `path`.
            at: The location of the path in the manifest.
        """
        if problem := paths.find_misfit(name):
            fix = "write `/`" if "\\" in name else "rename the file: it has the same name in the package"
            self._report("SW345", f"`{name}` is not a valid path on every system: {problem}", at, fix)
        other = seen_paths.setdefault(path.lower(), path)
        if other != path:
            message = f"`{path}` and `{other}` are the same file on case-insensitive systems such as Windows and macOS"
            self._report("SW345", message, at, "rename one")

    def _check_link(self, path: str, name: str, at: Place | None) -> bool:
        """Return whether a path is below the manifest's folder after links are resolved. Report a path that is not."""
        if at is None or self._reader.is_within(path, posixpath.dirname(self.entry)):
            return True
        self._report(
            "SW012",
            f"`{name}` links to a file outside the manifest's folder",
            at,
            "replace the link with a copy of the file",
        )
        return False

    def _report_outside(self, name: str, at: Place, fix: str) -> None:
        self._report(
            "SW012",
            f"`{name}` is outside the manifest's folder",
            at,
            f"write a path relative to {fix} below the manifest's folder",
        )

    def _expand_pattern(self, base: str, pattern: str, at: Place) -> list[str]:
        if not pattern or _NOT_PATH.search(pattern):
            self._report(
                "SW012", "expected a file path", at, "write a path relative to this file, such as `tools/*.yaml`"
            )
            return []
        path = None if _SCHEME.match(pattern) else self._resolve_path(base, pattern)
        if path is None:
            self._report_outside(pattern, at, "this file, and move the included file")
            return []
        if not _GLOB.search(pattern):
            return [path]
        folder = posixpath.dirname(base)
        try:
            matches = self._reader.glob(folder, posixpath.normpath(pattern))
        except (OSError, ValueError) as error:
            self._report("SW011", f"`{pattern}` cannot be used as a pattern: {error}", at, "list the files")
            return []
        targets = [target for match in matches if (target := posixpath.normpath(match)) != base]
        if not targets:
            self._report("SW301", f"`{pattern}` matches no file", at, "check the path: it is relative to this file")
        return targets

    def _resolve_name(self, base: str, name: str, place: Place, kind: str) -> str | None:
        is_path = not _SCHEME.match(name) and not _NOT_PATH.search(name)
        path = self._resolve_path(base, paths.use_slashes(name)) if is_path else None
        if path is None:
            self._report_outside(name, place, f"this file, and move the {kind}")
        return path

    def _resolve_path(self, base: str, relative: str) -> str | None:
        return paths.resolve(posixpath.dirname(self.entry), base, relative)

    def _read(self, path: str, at: Place | None, *, lenient: bool = False) -> Document | None:
        """Read a file unless it was read before. Return None after reporting a failure.

        With `lenient`, ignore missing files.
        """
        if path in self.documents or path in self._unreadable:
            return self.documents.get(path)
        try:
            path.encode()  # diagnostics and file headers contain the name
            if not self._check_link(path, path, at):
                self._unreadable.add(path)
                return None
            data = self._reader.read(path)
        except UnicodeEncodeError:
            self._unreadable.add(path)
            self._report("SW001", f"the name of `{path}` is not UTF-8", at, "rename the file or its folder")
            return None
        except OSError as error:
            if not (lenient and isinstance(error, FileNotFoundError)):
                self._unreadable.add(path)
                found = report_unreadable(path, error, at)
                near = self._find_near(path) if at is None and isinstance(error, FileNotFoundError) else None
                self.found.append(replace(found, help=f"did you mean `{near}`?") if near else found)
            return None
        read, problems = read_document(path, data, jsontext.parse_file if _is_json(path) else yamltext.parse)
        value, root = _unwrap(read.value)
        expanded = shorthand.expand(value, path)
        self.found += [*problems, *expanded.faults]
        self.documents[path] = read = replace(read, value=expanded.value, root=root, origins=expanded.origins)
        return read

    def _report(self, code: str, message: str, at: Place | None, fix: str | None = None) -> None:
        self.found.append(Diagnostic(code, message, at, fix))


def read_document(
    path: str, data: bytes, parse: Callable[[str], tuple[Json, list[Problem]]], wanted: str | None = None
) -> tuple[Document, list[Diagnostic]]:
    """Parse a file. Return the document and the diagnostics.

    Args:
        path: The file's path, as the user wrote it.
        data: The file's contents.
        parse: Parses text and returns the value and the problems.
        wanted: The expected kind of file in messages, if not a manifest.
    """
    text, problem = _decode(data, wanted or "a manifest in YAML or JSON")
    value, problems = (None, [problem]) if problem else parse(text)
    if problems and (conflict := _CONFLICT.search(text)):
        message = "this is an unresolved merge conflict"
        problems = [Problem("SW004", message, *conflict.span(), "resolve the conflict, and remove its markers")]
    parsed = Document(path, text, value)
    if wanted is not None:
        problems = [
            replace(problem, help=f"name {wanted}") if problem.code == "SW003" else problem for problem in problems
        ]
    return parsed, [parsed.lines.report(path, problem) for problem in problems]


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def _decode(data: bytes, wanted: str) -> tuple[str, Problem | None]:
    """Decode a file. If the file is not valid UTF-8 text, return the problem, and text that can be displayed."""
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        if data.startswith(_UTF_16):
            return "", Problem("SW002", "the file is in UTF-16", 0, 1, "save it in UTF-8")
        if b"\0" in data:
            return "", Problem("SW002", "the file is binary", 0, 1, f"name {wanted}")
        at = len(data[: error.start].decode("utf-8").removeprefix("\ufeff"))
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        return text, Problem("SW002", message, at, at + 1, "save the file in UTF-8")
    if "\0" in text:
        return "", Problem("SW002", "the file is binary", 0, 1, f"name {wanted}")
    if not text.strip():
        return text, positions.report_empty("the file is empty")
    return text, None


def report_unreadable(path: str, error: OSError, at: Place | None = None) -> Diagnostic:
    """Return a diagnostic for an unreadable file. `at` is the location of the reference to it."""
    if _URL.match(path):
        return Diagnostic("SW001", f"`{path}` is not a file", at, "download it and list the file: URLs are not fetched")
    if isinstance(error, FileNotFoundError):
        fix = "check the path: it is relative to " + ("this file" if at else "the working folder")
        return Diagnostic("SW011" if at else "SW001", f"`{path}` does not exist", at, fix)
    if isinstance(error, IsADirectoryError):
        fix = f"list its files, such as `{posixpath.join(path, '*.yaml')}`"
        return Diagnostic("SW001", f"`{path}` is a folder", at, fix)
    if isinstance(error, PermissionError):
        return Diagnostic("SW001", f"`{path}` cannot be read: permission denied", at, "check the file's permissions")
    return Diagnostic("SW001", f"`{path}` cannot be read: {error.strerror or error}", at)


def _unwrap(value: Json) -> tuple[Json, Pointer]:
    if isinstance(value, dict) and "jsonrpc" in value and _lists_tools(value.get("result")):
        return value["result"], ("result",)
    return value, ()


def _find_kind(document: Document) -> Kind:
    """Return whether an included file is a saved list or a fragment. A fragment uses manifest features.

    Manifest features are `stubwright` keys and references to shared schemas. In JSON files, which may contain a
    server's own `#/schemas/`, only references to other files count.
    """
    value = document.value
    if not _lists_tools(value):
        return "manifest"
    is_manifest = any(isinstance(tool, dict) and "stubwright" in tool for tool in value["tools"])
    references = _SHARED_REFERENCE.finditer(document.text)
    is_manifest |= any(match["file"] or not _is_json(document.path) for match in references)
    return "manifest" if is_manifest else "tools-list"


def _lists_tools(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("tools"), list)
        and structure.list_manifest_keys() & value.keys() == {"tools"}
    )


def _list_includes(document: Document) -> Iterator[tuple[Place, str, str]]:
    listed = document.value.get("include") if isinstance(document.value, dict) else None
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        place = Place(document.path, ("include", index))
        if isinstance(item, str):
            yield place, item, ""
        elif isinstance(item, dict) and isinstance(item.get("path"), str):
            prefix = item.get("prefix", "")
            yield place / "path", item["path"], prefix if isinstance(prefix, str) else ""


def _list_attached(document: Document) -> Iterator[tuple[Place, str]]:
    for pointer, entry in locations.list_items(document.value, ("resources",)):
        yield from _list_file(document, entry, (*pointer, "stubwright"), "stubwright")
    for pointer, entry in locations.list_items(document.value, ("prompts",)):
        for below, message in locations.list_items(entry, ("stubwright", "messages")):
            for kind in ("image", "audio", "resource"):
                yield from _list_file(document, message, (*pointer, *below, kind), kind)


def _list_skill_folders(document: Document) -> Iterator[tuple[Place, str]]:
    listed = document.value.get("skills") if isinstance(document.value, dict) else None
    for index, name in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(name, str) and name:
            yield Place(document.path, ("skills", index)), name


def _list_file(document: Document, holder: Json, pointer: Pointer, key: str) -> Iterator[tuple[Place, str]]:
    part = holder.get(key) if isinstance(holder, dict) else None
    name = part.get("file") if isinstance(part, dict) else None
    if isinstance(name, str) and name:
        yield Place(document.path, (*pointer, "file")), name


def _list_file_references(document: Document) -> Iterator[tuple[Pointer, str, bool]]:
    """Yield each file reference in a document's schemas: the location, the text, and whether the file can be missing.

    A file can be missing if an enclosing schema has an `$id`, because the reference might be relative to the `$id`.
    """
    if not _FILE_REFERENCE.search(document.text):
        return
    for _, pointer, schema in locations.find_schemas(document.value):
        dialect = dialects.find_dialect(schema) or dialects.DRAFT_2020_12
        inner = list(dialects.iterate_subschemas(schema, dialect))
        lenient = any(isinstance(below, dict) and ("$id" in below or "id" in below) for _, below in inner)
        for steps, below in inner:
            reference = below.get("$ref") if isinstance(below, dict) else None
            if isinstance(reference, str) and reference and reference[0] != "#" and not _NOT_PATH.search(reference):
                yield (*pointer, *steps, "$ref"), reference, lenient
