"""Finds the references in a schema (`$ref`, `$dynamicRef` and `$recursiveRef`) and their targets, without any I/O."""

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
"""The reference keywords."""

HANDLE = "x-handle"
"""stubwright's only schema keyword, which marks state handle IDs."""

_SEARCHED_KEYWORDS = tuple(f'"{keyword}"'.encode() for keyword in (*KEYWORDS, HANDLE))
_IDENTIFYING = frozenset({*KEYWORDS, "$id", "id", "$anchor", "$dynamicAnchor"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_SHARED = re.compile(r"(?P<file>[^#]*)#/schemas/(?P<steps>[^/].*)", re.DOTALL)
_COMMON_PLACES = frozenset({"/components/schemas", "/definitions", "/$defs", "/components", "/schema"})
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})


class Key(NamedTuple):
    """Identifies a shared schema: the file, and the name under the file's `schemas`."""

    file: str
    name: str


@dataclass(frozen=True, slots=True)
class LocalTarget:
    """A target in the same root schema. `rooted` is true if bundling the schema changes the reference."""

    pointer: Pointer
    rooted: bool


@dataclass(frozen=True, slots=True)
class SharedSchema:
    """A shared schema under `schemas` as a target."""

    key: Key


@dataclass(frozen=True, slots=True)
class Meta:
    """A meta-schema as a target. Validators include it."""

    uri: str


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """An unresolvable target, with the diagnostic's code, message and help."""

    code: str
    message: str
    help: str


Target: TypeAlias = LocalTarget | SharedSchema | Meta | BrokenReference


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference: the value `text` of `keyword` in the schema at `pointer`.

    `enclosed` is true if the nearest enclosing `$id` is not the root's.
    """

    keyword: str
    pointer: Pointer
    text: str
    target: Target
    enclosed: bool


@dataclass(frozen=True)
class Outline:
    """A root schema, with its subschemas and references computed on demand.

    Attributes:
        place: The root schema's location in the source.
        schema: The root schema.
        dialect: The root schema's dialect.
        folder: The context for references to other files.
        plain: True if the schema is known to have no references or handles, so that no search is necessary.
        own: The schema without bundled schemas, if known. Only `enter` searches bundled schemas.
        apart: Returns whether a pointer is inside a bundled schema.
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
        """The subschemas in source order, then the references' other targets, keyed by pointer."""
        return self._search_result.schemas

    @property
    def keys(self) -> Container[str]:
        """All keys of `schemas`."""
        return self._search_result.keys

    @property
    def references(self) -> Sequence[Reference]:
        """The references, in `schemas` order."""
        return () if self.plain else self._search_result.references

    @property
    def anchors(self) -> Mapping[tuple[str, str], Pointer]:
        """The pointers of anchors, by base URI and name."""
        return self._search_result.anchors

    @property
    def repeated(self) -> Sequence[Pointer]:
        """The pointers of duplicate anchors and identifiers."""
        return self._search_result.repeated

    @cached_property
    def _shared(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys(ref.target.key for ref in self.references if isinstance(ref.target, SharedSchema)))

    @cached_property
    def _search_result(self) -> _Walk:
        walk = _Walk(self.place, self.schema, self.dialect, self.folder, self.apart)
        walk.enter((), self.schema if self.own is None else self.own)
        return walk

    def enter(self, place: Pointer) -> bool:
        """Search the bundled schema at `place`. Return False if `place` is not in a bundled schema that is still
        unsearched.
        """
        walk = self._search_result
        if not walk.is_apart(place):
            return False
        walk.enter(place, get_at(self.schema, place))
        return True

    @property
    def identified(self) -> bool:
        """True if the root has an identifier, so that bundling does not change what its references resolve to."""
        return _get_identifier(self.schema, self.dialect) is not None

    def find_having(self, key: str) -> Iterable[tuple[Pointer, dict[str, Json]]]:
        """Return the subschemas that have a key, with their pointers."""
        if key not in self.keys:
            return ()
        return [
            (pointer, schema) for pointer, schema in self.schemas.items() if isinstance(schema, dict) and key in schema
        ]

    def locate(self, pointer: Pointer) -> Place:
        """Return the source location of a part of the schema."""
        return Place(self.place.file, (*self.place.pointer, *pointer))

    def list_shared(self) -> Iterable[Key]:
        """Return the referenced shared schemas in order, without duplicates."""
        return self._shared

    def find_folded(self, pointer: Pointer) -> Iterable[Pointer]:
        """Yield the schema at `pointer`, then each enclosing schema that applies to the same instance."""
        while True:
            yield pointer
            above = pointer[:-1]
            while above and above not in self.schemas:
                above = above[:-1]
            if not pointer or pointer[len(above)] not in _IN_PLACE:
                return
            pointer = above


@dataclass(frozen=True, slots=True)
class Folder:
    """The context for references between files: the manifest's folder, and the shared schema names by file."""

    path: str
    schemas: Mapping[str, Iterable[str]]


def is_plain(text: bytes) -> bool:
    """Return whether JSON text contains no references or handles."""
    return not any(keyword in text for keyword in _SEARCHED_KEYWORDS)


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
        for pointer, keyword, text in waiting:  # grows during the loop with targets where no schema is expected
            reference = self._make_reference(pointer, keyword, text)
            self.references.append(reference)
            if not isinstance(reference.target, LocalTarget) or reference.target.pointer in self.schemas:
                continue
            target = reference.target.pointer
            if self.is_apart(target):
                self.targets[target[:2]].append(target)
            else:
                self._enter(target, get_at(self.schema, target), waiting)

    def _enter(self, start: Pointer, schema: Json, waiting: list[tuple[Pointer, str, str]]) -> None:
        keywords = [keyword for keyword in KEYWORDS if keyword in self.dialect.plain]
        malformed: set[Pointer] = set()
        for below, subschema in dialects.iterate_subschemas(schema, self.dialect):
            pointer = (*start, *below)
            if pointer in self.schemas or (
                malformed and any(pointer[:end] in malformed for end in range(len(pointer)))
            ):
                continue
            # References use `$defs` even in dialects without this keyword.
            if below[-2:-1] and below[-2] in self.dialect.foreign and not is_valid(subschema, self.dialect):
                malformed.add(pointer)  # the meta-schema ignores this key, so it can have any value
                continue
            self.schemas[pointer] = subschema
            if not isinstance(subschema, dict):
                continue
            self.keys.update(subschema)
            if pointer and _IDENTIFYING.isdisjoint(subschema):
                continue
            self._identify(pointer, subschema)
            waiting += [
                (pointer, keyword, subschema[keyword])
                for keyword in keywords
                if keyword in subschema and isinstance(subschema[keyword], str)
            ]

    def _identify(self, pointer: Pointer, schema: Mapping[str, Json]) -> None:
        base = self._find_base(pointer)
        identifier = _get_identifier(schema, self.dialect)
        if identifier is not None:
            base, _ = _resolve(base, identifier)
            if self.resources.setdefault(base, pointer) != pointer:
                self.repeated.append((*pointer, name_id_keyword(self.dialect)))
            self.bases[pointer] = base
        elif not pointer:
            self.resources[base], self.bases[pointer] = pointer, base
        for keyword, anchor in _list_anchors(schema, self.dialect):
            first = self.anchors.setdefault((base, anchor), (*pointer, keyword))
            if first[:-1] != pointer:
                self.repeated.append((*pointer, keyword))

    def _find_base(self, pointer: Pointer) -> str:
        while pointer and pointer not in self.bases:
            pointer = pointer[:-1]
        return self.bases.get(pointer, "")

    def _make_reference(self, pointer: Pointer, keyword: str, text: str) -> Reference:
        base = self._find_base(pointer)
        enclosed = self.resources[base] != ()
        return Reference(keyword, pointer, text, self._resolve_target(text, base), enclosed)

    def _resolve_target(self, text: str, base: str) -> Target:
        uri, fragment = _resolve(base, text)
        if uri in self.resources and not (text.startswith("#/schemas/") and self.place.file in self.folder.schemas):
            return self._resolve_local(text, uri, unquote(fragment))
        shared = _SHARED.fullmatch(text)
        if shared is not None and not _SCHEME.match(text) and self.place.file in self.folder.schemas:
            return self._resolve_shared(text, unquote(shared["file"]), split_pointer(unquote(f"/{shared['steps']}")))
        if uri.startswith(("http://json-schema.org/", "https://json-schema.org/")):
            return self._resolve_metaschema(text, uri, fragment)
        return self._report_unsupported(text, uri)

    def _resolve_local(self, text: str, uri: str, fragment: str) -> Target:
        start = self.resources[uri]
        if fragment and not fragment.startswith("/"):
            anchored = self.anchors.get((uri, fragment))
            if anchored is not None:
                return LocalTarget(anchored[:-1], rooted=False)
            known = [name for base, name in self.anchors if base == uri]
            fix = did_you_mean(fragment, known, "anchors here")
            return BrokenReference("SW220", f"no schema in this document has the anchor `{fragment}`", fix)
        pointer: Pointer = start
        value = get_at(self.schema, start)
        for step in split_pointer(fragment):
            if isinstance(value, dict) and step in value:
                value, pointer = value[step], (*pointer, step)
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value, pointer = value[int(step)], (*pointer, int(step))
            else:
                fix = self._suggest_shared(text, fragment) or _advise_on_step(step, value)
                return BrokenReference(
                    "SW220", f"`{text}` does not exist: {_describe_missing(pointer, start, step)}", fix
                )
        if not isinstance(value, dict | bool):
            return BrokenReference(
                "SW220", f"`{text}` refers to {_describe_value(value)}, which is not a schema", "refer to a schema"
            )
        if not dialects.is_schema(self.schema, pointer, self.dialect) and not is_valid(value, self.dialect):
            fix = f"refer to a schema, or fix this one: it must be valid in {self.dialect.name}"
            return BrokenReference("SW220", f"`{text}` does not refer to a valid schema", fix)
        return LocalTarget(pointer, rooted=not uri)

    def _suggest_shared(self, text: str, fragment: str) -> str | None:
        """Suggest a shared schema for a pointer under a common key such as `#/definitions/`."""
        known = [*self.folder.schemas.get(self.place.file, ())]
        place, _, name = fragment.rpartition("/")
        if not text.startswith("#") or place not in _COMMON_PLACES or not known:
            return None
        near = name if name in known else find_nearest(name, known)
        return f'shared schemas are at "#/schemas/…": write `$ref: "#/schemas/{near}"`' if near else None

    def _resolve_shared(self, text: str, file: str, steps: list[str]) -> Target:
        path = paths.resolve(self.folder.path, self.place.file, file) if file else self.place.file
        if path is None:
            return _report_outside_folder(text)
        names = self.folder.schemas.get(path)
        if names is None:
            fix = self._suggest_other_file(steps[0], path) or "refer to a manifest or fragment that declares the schema"
            return BrokenReference("SW220", f"`{path}` has no `schemas`", fix)
        name, *rest = steps
        if name not in names:
            near = find_nearest(name, names)
            fix = (None if near else self._suggest_other_file(name, path)) or did_you_mean(
                name, names, f"`schemas` in {path}"
            )
            return BrokenReference("SW220", f"`schemas` in {path} has no `{name}`", fix)
        if rest:
            return BrokenReference(
                "SW220",
                f"`{text}` refers to part of a shared schema, but only complete schemas can be shared",
                "move that part to its own name under `schemas`",
            )
        return SharedSchema(Key(path, name))

    def _suggest_other_file(self, name: str, path: str) -> str | None:
        """Suggest a shared schema with the same name in a file other than `path`, or return None."""
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

    def _resolve_metaschema(self, text: str, uri: str, fragment: str) -> Target:
        """Resolve a reference to a meta-schema, which must belong to the schema's own dialect."""
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

    def _report_unsupported(self, text: str, uri: str) -> BrokenReference:
        scheme = match[0].lower() if (match := _SCHEME.match(uri)) else ""
        if scheme == "file" or len(scheme) == 1 or "\\" in text or (text.startswith("/") and not text.startswith("//")):
            return _report_outside_folder(text)  # a single letter is a Windows drive
        if scheme or text.startswith("//"):
            return BrokenReference(
                "SW222",
                f"`{text}` is a remote reference, which is never fetched",
                'copy the schema to `schemas:` and refer to it with "#/schemas/NAME"',
            )
        if paths.resolve(self.folder.path, self.place.file, unquote(uri)) is None:
            return _report_outside_folder(text)
        return BrokenReference(
            "SW220",
            f"`{text}` is not a supported reference",
            'write "#/$defs/NAME" for a nested schema, "#/schemas/NAME" for a shared one, '
            'and "FILE.yaml#/schemas/NAME" for one in another file',
        )


def name_id_keyword(dialect: Dialect) -> str:
    """Return the keyword for identifiers: `$id`, or `id` in draft-04."""
    return "id" if "id" in dialect.plain else "$id"


def _get_identifier(schema: Json, dialect: Dialect) -> str | None:
    """Return a schema's identifier, the base of the references in the schema, or None."""
    if not isinstance(schema, dict) or ("$ref" in schema and dialect.reference_hides_siblings):
        return None
    text = schema.get(name_id_keyword(dialect))
    return text.rstrip("#") if isinstance(text, str) and not text.startswith("#") else None


def _list_anchors(schema: Mapping[str, Json], dialect: Dialect) -> Iterable[tuple[str, str]]:
    """Yield each anchor's keyword and name. Before 2019-09, anchors are identifiers that start with `#`."""
    if dialect.reference_hides_siblings:
        keyword = name_id_keyword(dialect)
        text = schema.get(keyword)
        return [(keyword, text[1:])] if isinstance(text, str) and text[:1] == "#" != text else []
    keywords = ("$anchor", "$dynamicAnchor")
    return [(keyword, text) for keyword in keywords if isinstance(text := schema.get(keyword), str)]


def _resolve(base: str, text: str) -> tuple[str, str]:
    """Resolve a reference against a base URI (RFC 3986, section 5). Return the URI and the fragment."""
    uri, _, fragment = text.partition("#")
    try:
        return (urljoin(base, uri) if uri else base), fragment
    except ValueError:  # such as an invalid IPv6 address
        return uri, fragment


def get_at(value: Json, pointer: Pointer) -> Json:
    """Return the part of `value` at `pointer`."""
    for step in pointer:
        value = value[step]
    return value


def _report_outside_folder(text: str) -> BrokenReference:
    return BrokenReference(
        "SW221",
        f"`{text}` is outside the manifest's folder",
        "copy the file into the folder of the manifest, or the schema to `schemas:`",
    )


def _describe_missing(pointer: Pointer, start: Pointer, step: str) -> str:
    above = pointer[len(start) :]
    return f"`{format_pointer(above)}` has no `{step}`" if above else f"the schema has no `{step}`"


def _advise_on_step(step: str, value: Json) -> str:
    if isinstance(value, list):
        return f"the list there has {len(value)} item{'' if len(value) == 1 else 's'}, counted from 0"
    return did_you_mean(step, value if isinstance(value, dict) else (), "keys there")


def _describe_value(value: Json) -> str:
    return "a list" if isinstance(value, list) else "null" if value is None else f"the value {str(value)[:40]!r}"
