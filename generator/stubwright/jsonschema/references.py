"""Finds the references of a schema, every `$ref`, `$dynamicRef` and `$recursiveRef`, with their targets.

A reference without a target is a `BrokenReference`; none is raised, read or fetched.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import unquote, urljoin

from stubwright import paths
from stubwright.diagnostics import Place
from stubwright.diagnostics.suggestions import did_you_mean, find_nearest
from stubwright.jsonschema import dialects
from stubwright.jsonschema.metaschema import is_valid
from stubwright.jsonschema.pointers import format_pointer
from stubwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
"""The keywords for references."""

HANDLE = "x-handle"
"""stubwright's only keyword in a schema; it marks a state handle."""

_LINKING = tuple(f'"{keyword}"'.encode() for keyword in (*KEYWORDS, HANDLE))
_NAMING = frozenset({*KEYWORDS, "$id", "id", "$anchor", "$dynamicAnchor"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_SHARED = re.compile(r"(?P<file>[^#]*)#/schemas/(?P<steps>[^/].*)", re.DOTALL)
_HOMES = frozenset({"/components/schemas", "/definitions", "/$defs", "/components", "/schema"})
_FOLDED = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})


class Key(NamedTuple):
    """A shared schema: its file, and its name under `schemas` there."""

    file: str
    name: str


@dataclass(frozen=True, slots=True)
class Local:
    """A place in the same root. `rooted` is true if the reference is relative to the root, which bundling moves."""

    pointer: Pointer
    rooted: bool


@dataclass(frozen=True, slots=True)
class SharedSchema:
    """A shared schema."""

    key: Key


@dataclass(frozen=True, slots=True)
class Meta:
    """A meta-schema of JSON Schema itself, which every validator has."""

    uri: str


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """A reference without a target: the diagnostic's code, message and help."""

    code: str
    message: str
    help: str


Target: TypeAlias = Local | SharedSchema | Meta | BrokenReference


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference: the value `text` of `keyword` in the schema at `pointer`.

    `enclosed` is true if the nearest `$id` above it is not the root's.
    """

    keyword: str
    pointer: Pointer
    text: str
    target: Target
    enclosed: bool


@dataclass(frozen=True)
class Outline:
    """A root schema, which is at `place`; its contents are computed on demand.

    `plain` is true if it is known to have neither references nor handles, so the search is skipped. `apart` returns
    whether a pointer is inside a bundled schema, and `own` is the schema without bundled ones: they are only read by
    `enter`.
    """

    place: Place
    schema: Json
    dialect: Dialect
    folder: Folder
    plain: bool = False
    own: Json = None
    apart: Callable[[Pointer], bool] | None = None

    @property
    def schemas(self) -> Mapping[Pointer, Json]:
        """The places of schemas, in the order of the source, then places that are only targets of references."""
        return self._walked.schemas

    @property
    def keys(self) -> Container[str]:
        """All keys that `schemas` have."""
        return self._walked.keys

    @property
    def references(self) -> Sequence[Reference]:
        """The references, in the order of `schemas`."""
        return () if self.plain else self._walked.references

    @property
    def anchors(self) -> Mapping[tuple[str, str], Pointer]:
        """The pointer of each plain name, by its base URI and the name."""
        return self._walked.anchors

    @property
    def repeated(self) -> Sequence[Pointer]:
        """The places of duplicate anchors or identifiers."""
        return self._walked.repeated

    @cached_property
    def _shared(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys(ref.target.key for ref in self.references if isinstance(ref.target, SharedSchema)))

    @cached_property
    def _walked(self) -> _Walk:
        walk = _Walk(self.place, self.schema, self.dialect, self.folder, self.apart)
        walk.enter((), self.schema if self.own is None else self.own)
        return walk

    def enter(self, place: Pointer) -> bool:
        """Read the bundled schema at a place, and return whether it is one, and new."""
        walk = self._walked
        if not walk.is_apart(place):
            return False
        walk.enter(place, get_at(self.schema, place))
        return True

    @property
    def identified(self) -> bool:
        """True if the root has its own identifier, so its references do not depend on where it is bundled."""
        return _identifier(self.schema, self.dialect) is not None

    def find_having(self, key: str) -> Iterable[tuple[Pointer, dict[str, Json]]]:
        """Return the schemas that have a key."""
        if key not in self.keys:
            return ()
        return [
            (pointer, schema) for pointer, schema in self.schemas.items() if isinstance(schema, dict) and key in schema
        ]

    def locate(self, pointer: Pointer) -> Place:
        """Return the place of a part of the schema."""
        return Place(self.place.file, (*self.place.pointer, *pointer))

    def list_shared(self) -> Iterable[Key]:
        """Return the shared schemas that it references, each once, in order."""
        return self._shared

    def find_folded(self, pointer: Pointer) -> Iterable[Pointer]:
        """Yield the schema at `pointer`, and the schemas above it that apply it to their own instance."""
        while True:
            yield pointer
            above = pointer[:-1]
            while above and above not in self.schemas:
                above = above[:-1]
            if not pointer or pointer[len(above)] not in _FOLDED:
                return
            pointer = above


@dataclass(frozen=True, slots=True)
class Folder:
    """The context of references between files: the manifest's folder, and the names of all shared schemas."""

    path: str
    schemas: Mapping[str, Iterable[str]]


def is_plain(text: bytes) -> bool:
    """Return whether schemas in this JSON cannot have references or handles."""
    return not any(keyword in text for keyword in _LINKING)


@dataclass(slots=True)
class _Walk:
    place: Place
    schema: Json
    dialect: Dialect
    folder: Folder
    apart: Callable[[Pointer], bool] | None
    entered: set[Pointer] = field(default_factory=set)
    targets: dict[Pointer, list[Pointer]] = field(default_factory=lambda: defaultdict(list))
    schemas: dict[Pointer, Json] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    references: list[Reference] = field(default_factory=list)
    bases: dict[Pointer, str] = field(default_factory=dict)
    resources: dict[str, Pointer] = field(default_factory=dict)
    anchors: dict[tuple[str, str], Pointer] = field(default_factory=dict)
    repeated: list[Pointer] = field(default_factory=list)

    def is_apart(self, pointer: Pointer) -> bool:
        return self.apart is not None and pointer[:2] not in self.entered and self.apart(pointer)

    def enter(self, place: Pointer, schema: Json) -> None:
        self.entered.add(place)
        waiting: list[tuple[Pointer, str, str]] = []
        self._enter(place, schema, waiting)
        for target in self.targets.pop(place, ()):
            self._enter(target, get_at(self.schema, target), waiting)
        for pointer, keyword, text in waiting:  # grows during the loop: targets outside the places of schemas
            reference = self._reference(pointer, keyword, text)
            self.references.append(reference)
            if not isinstance(reference.target, Local) or reference.target.pointer in self.schemas:
                continue
            target = reference.target.pointer
            if self.is_apart(target):
                self.targets[target[:2]].append(target)
            else:
                self._enter(target, get_at(self.schema, target), waiting)

    def _enter(self, start: Pointer, schema: Json, waiting: list[tuple[Pointer, str, str]]) -> None:
        """Record the schemas at and below `start`, and their references."""
        keywords = [keyword for keyword in KEYWORDS if keyword in self.dialect.plain]
        malformed: set[Pointer] = set()
        for below, subschema in dialects.iterate_subschemas(schema, self.dialect):
            pointer = (*start, *below)
            if pointer in self.schemas or (
                malformed and any(pointer[:end] in malformed for end in range(len(pointer)))
            ):
                continue
            # In practice, references use `$defs` even before 2019-09, where it is not a keyword.
            if below[-2:-1] and below[-2] in self.dialect.foreign and not is_valid(subschema, self.dialect):
                malformed.add(pointer)  # the meta-schema does not check this place, so any value is possible
                continue
            self.schemas[pointer] = subschema
            if not isinstance(subschema, dict):
                continue
            self.keys.update(subschema)
            if pointer and _NAMING.isdisjoint(subschema):
                continue
            self._identify(pointer, subschema)
            waiting += [
                (pointer, keyword, subschema[keyword])
                for keyword in keywords
                if keyword in subschema and isinstance(subschema[keyword], str)
            ]

    def _identify(self, pointer: Pointer, schema: Mapping[str, Json]) -> None:
        base = self._base(pointer)
        identifier = _identifier(schema, self.dialect)
        if identifier is not None:
            base, _ = _resolved(base, identifier)
            if self.resources.setdefault(base, pointer) != pointer:
                self.repeated.append((*pointer, name_id_keyword(self.dialect)))
            self.bases[pointer] = base
        elif not pointer:
            self.resources[base], self.bases[pointer] = pointer, base
        for keyword, anchor in _anchors(schema, self.dialect):
            first = self.anchors.setdefault((base, anchor), (*pointer, keyword))
            if first[:-1] != pointer:
                self.repeated.append((*pointer, keyword))

    def _base(self, pointer: Pointer) -> str:
        while pointer and pointer not in self.bases:
            pointer = pointer[:-1]
        return self.bases.get(pointer, "")

    def _reference(self, pointer: Pointer, keyword: str, text: str) -> Reference:
        base = self._base(pointer)
        enclosed = self.resources[base] != ()
        return Reference(keyword, pointer, text, self._target(text, base), enclosed)

    def _target(self, text: str, base: str) -> Target:
        uri, fragment = _resolved(base, text)
        if uri in self.resources and not (text.startswith("#/schemas/") and self.place.file in self.folder.schemas):
            return self._local(text, uri, unquote(fragment))
        shared = _SHARED.fullmatch(text)
        if shared is not None and not _SCHEME.match(text) and self.place.file in self.folder.schemas:
            return self._shared(text, unquote(shared["file"]), split_pointer(unquote(f"/{shared['steps']}")))
        if uri.startswith(("http://json-schema.org/", "https://json-schema.org/")):
            return self._meta(text, uri, fragment)
        return self._outside(text, uri)

    def _local(self, text: str, uri: str, fragment: str) -> Target:
        start = self.resources[uri]
        if fragment and not fragment.startswith("/"):
            anchored = self.anchors.get((uri, fragment))
            if anchored is not None:
                return Local(anchored[:-1], rooted=False)
            known = [name for base, name in self.anchors if base == uri]
            fix = did_you_mean(fragment, known, "anchors here")
            return BrokenReference("SW220", f"no schema here has the anchor `{fragment}`", fix)
        pointer: Pointer = start
        value = get_at(self.schema, start)
        for step in split_pointer(fragment):
            if isinstance(value, dict) and step in value:
                value, pointer = value[step], (*pointer, step)
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value, pointer = value[int(step)], (*pointer, int(step))
            else:
                fix = self._meant(text, fragment) or _near(step, value)
                return BrokenReference("SW220", f"`{text}` does not exist: {_missing(pointer, start, step)}", fix)
        if not isinstance(value, dict | bool):
            return BrokenReference(
                "SW220", f"`{text}` refers to {_kind(value)}, which is not a schema", "refer to a schema"
            )
        if not dialects.is_schema(self.schema, pointer, self.dialect) and not is_valid(value, self.dialect):
            fix = f"refer to a schema, or fix this one: it must be valid in {self.dialect.name}"
            return BrokenReference("SW220", f"`{text}` refers to something that is not a valid schema", fix)
        return Local(pointer, rooted=not uri)

    def _meant(self, text: str, fragment: str) -> str | None:
        """Return advice for a pointer to a usual place of shared schemas; None if no name is similar."""
        known = [*self.folder.schemas.get(self.place.file, ())]
        place, _, name = fragment.rpartition("/")
        if not text.startswith("#") or place not in _HOMES or not known:
            return None
        near = name if name in known else find_nearest(name, known)
        return f'shared schemas are at "#/schemas/…": write `$ref: "#/schemas/{near}"`' if near else None

    def _shared(self, text: str, file: str, steps: list[str]) -> Target:
        path = paths.resolve(self.folder.path, self.place.file, file) if file else self.place.file
        if path is None:
            return _escape(text)
        names = self.folder.schemas.get(path)
        if names is None:
            fix = self._elsewhere(steps[0], path) or "name a manifest or fragment that has the schema"
            return BrokenReference("SW220", f"`{path}` has no `schemas`", fix)
        name, *rest = steps
        if name not in names:
            near = find_nearest(name, names)
            fix = (None if near else self._elsewhere(name, path)) or did_you_mean(name, names, f"`schemas` in {path}")
            return BrokenReference("SW220", f"`schemas` in {path} has no `{name}`", fix)
        if rest:
            return BrokenReference(
                "SW220",
                f"`{text}` refers to part of a shared schema; only whole ones can be referred to",
                "move that part to its own name under `schemas`",
            )
        return SharedSchema(Key(path, name))

    def _elsewhere(self, name: str, path: str) -> str | None:
        """Return the reference to a shared schema in another file than `path`; None if no other file has it."""
        others = {other: names for other, names in self.folder.schemas.items() if other != path}
        exact = [(other, name) for other, names in others.items() if name in names]
        near = [
            (other, suggestion)
            for other, names in others.items()
            if (suggestion := find_nearest(name, names)) is not None
        ]
        if not exact and not near:
            return None
        other, suggestion = (exact or near)[0]
        here = posixpath.dirname(self.place.file) or "."
        file = "" if other == self.place.file else posixpath.relpath(other, here)
        return f'`{suggestion}` is in {other}: write `$ref: "{file}#/schemas/{suggestion}"`'

    def _meta(self, text: str, uri: str, fragment: str) -> Target:
        """Return a meta-schema, or a place in it; validators only have the meta-schemas of a schema's own dialect."""
        from jsonschema_rs import ValidationError, validator_for

        try:
            validator_for({"$schema": self.dialect.uri, "$ref": f"{uri}#{fragment}"}, offline=True)
        except ValidationError:
            return BrokenReference(
                "SW220",
                f"`{text}` is not a meta-schema of {self.dialect.name}",
                f"the meta-schema of this schema's own dialect is `{self.dialect.uri}`",
            )
        return Meta(uri)

    def _outside(self, text: str, uri: str) -> BrokenReference:
        scheme = match[0].lower() if (match := _SCHEME.match(uri)) else ""
        if scheme == "file" or len(scheme) == 1 or "\\" in text or (text.startswith("/") and not text.startswith("//")):
            return _escape(text)  # one letter is a Windows drive
        if scheme or text.startswith("//"):
            return BrokenReference(
                "SW222",
                f"`{text}` would have to be fetched, but references are never fetched",
                'copy the schema to `schemas:` and refer to it with "#/schemas/NAME"',
            )
        if paths.resolve(self.folder.path, self.place.file, unquote(uri)) is None:
            return _escape(text)
        return BrokenReference(
            "SW220",
            f"a manifest cannot have the reference `{text}`",
            'write "#/$defs/NAME" for a schema in this one, "#/schemas/NAME" for a shared one, '
            'and "FILE.yaml#/schemas/NAME" for one in another file',
        )


def name_id_keyword(dialect: Dialect) -> str:
    """Return the keyword for a schema's identifier: `$id`, and `id` in draft-04."""
    return "id" if "id" in dialect.plain else "$id"


def _identifier(schema: Json, dialect: Dialect) -> str | None:
    """Return the `$id` (`id` in draft-04) by which a schema opens its own scope for references."""
    if not isinstance(schema, dict) or ("$ref" in schema and dialect.reference_hides_siblings):
        return None
    text = schema.get(name_id_keyword(dialect))
    return text.rstrip("#") if isinstance(text, str) and not text.startswith("#") else None


def _anchors(schema: Mapping[str, Json], dialect: Dialect) -> Iterable[tuple[str, str]]:
    """Return the plain names of a schema, by keyword; before 2019-09 they were identifiers that start with `#`."""
    if dialect.reference_hides_siblings:
        keyword = name_id_keyword(dialect)
        text = schema.get(keyword)
        return [(keyword, text[1:])] if isinstance(text, str) and text[:1] == "#" != text else []
    keywords = ("$anchor", "$dynamicAnchor")
    return [(keyword, text) for keyword in keywords if isinstance(text := schema.get(keyword), str)]


def _resolved(base: str, text: str) -> tuple[str, str]:
    """Resolve the reference `text` against `base` (RFC 3986, section 5), into URI and fragment."""
    uri, _, fragment = text.partition("#")
    try:
        return (urljoin(base, uri) if uri else base), fragment
    except ValueError:  # such as an invalid IPv6 address
        return uri, fragment


def get_at(value: Json, pointer: Pointer) -> Json:
    """Return the value at `pointer` in `value`."""
    for step in pointer:
        value = value[step]
    return value


def _escape(text: str) -> BrokenReference:
    return BrokenReference(
        "SW221",
        f"`{text}` is outside the manifest's folder",
        "copy the file into the folder of the manifest, or the schema to `schemas:`",
    )


def _missing(pointer: Pointer, start: Pointer, step: str) -> str:
    above = pointer[len(start) :]
    return f"`{format_pointer(above)}` has no `{step}`" if above else f"the schema has no `{step}`"


def _near(step: str, value: Json) -> str:
    if isinstance(value, list):
        return f"the list there has {len(value)} item{'' if len(value) == 1 else 's'}, counted from 0"
    return did_you_mean(step, value if isinstance(value, dict) else (), "keys there")


def _kind(value: Json) -> str:
    return "a list" if isinstance(value, list) else "null" if value is None else f"the value {str(value)[:40]!r}"
