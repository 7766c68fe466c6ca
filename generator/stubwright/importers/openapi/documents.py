"""Reads an OpenAPI document's files, and resolves references (OpenAPI 3.1.1, section 4.6).

Swagger 2.0 is converted to OpenAPI 3.0. No URL is fetched, and no file outside the folder is read.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin

from stubwright import paths
from stubwright.compile.syntax import jsontext, yamltext
from stubwright.diagnostics.suggestions import shorten
from stubwright.importers import document_reader, error_recovery
from stubwright.importers.document_reader import DocumentError
from stubwright.importers.openapi import swagger
from stubwright.jsonschema.pointers import format_pointer
from stubwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.compile.source import Reader
    from stubwright.compile.syntax.positions import Problem
    from stubwright.ir import Json

_VERSION = re.compile(r"3\.([012])(\.\d+)?(-.*)?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_MAX_HOPS = 32
"""The maximum length of a reference chain."""
_LONGEST = 500
"""The maximum length of a reference in a message, longer than any that people write by hand."""


class UnsupportedError(ValueError):
    """Part of the document uses an unsupported feature or an unresolvable reference."""


def explain(error: UnsupportedError | RecursionError) -> str:
    """Return the reason for omitting part of the document."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value, its file relative to the root document's folder, and its JSON pointer."""

    value: Json
    file: str
    pointer: tuple[str, ...]

    @property
    def reference(self) -> str:
        """The location as a reference with its file: `api.yaml#/components/schemas/Pet`."""
        return f"{self.file}{format_pointer(self.pointer)}"

    def __truediv__(self, step: str) -> LocatedValue:
        """Return the value at a key or index. Raises KeyError or IndexError if the key or index does not exist."""
        below = self.value[int(step)] if isinstance(self.value, list) else self.value[step]
        return LocatedValue(below, self.file, (*self.pointer, step))

    def get(self, key: str) -> LocatedValue | None:
        """Return the value at a key, with its location; None if this is not a mapping or lacks the key."""
        return self / key if isinstance(self.value, dict) and key in self.value else None

    def get_field(self, key: str) -> Json:
        """Return the plain value at a key; None if this is not a mapping or lacks the key."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    @property
    def entries(self) -> list[tuple[str, LocatedValue]]:
        """The entries of a mapping; empty for other values."""
        return [(name, self / name) for name in self.value] if isinstance(self.value, dict) else []

    @property
    def items(self) -> list[LocatedValue]:
        """The items of a list; empty for other values."""
        return [self / str(index) for index in range(len(self.value))] if isinstance(self.value, list) else []

    def list_entries(self, key: str) -> list[tuple[str, LocatedValue]]:
        """Return the entries of the mapping at a key, if any."""
        below = self.get(key)
        return [] if below is None else below.entries

    def list_items(self, key: str) -> list[LocatedValue]:
        """Return the items of the list at a key, if any."""
        below = self.get(key)
        return [] if below is None else below.items


class Documents:
    """The root document and other files, each read once, on first use."""

    def __init__(self, path: str, reader: Reader, *, is_alone: bool = False, origin: str | None = None) -> None:
        """Read the root document.

        Args:
            path: The root document's path.
            reader: Reads the document's files.
            is_alone: True if the document cannot reference other files.
            origin: The document's URL, if any.

        Raises:
            DocumentError: The file cannot be read or is not an OpenAPI document of a supported version.
        """
        self.followed: dict[tuple[str, tuple[str, ...]], str] = {}
        """The object types of references where the specification allows none, keyed by location."""
        self.recovered: list[str] = []
        """Notes on errors recovered in the files."""
        self._reader = reader
        self._is_alone = is_alone
        self.origin = origin
        """The document's URL, the base for servers without a host (3.1.1, section 4.8.5)."""
        self._folder, self._name = posixpath.split(path)
        self._values: dict[str, Json] = {}
        self._values[self._name] = self._read(self._name)
        root = self._values[self._name]
        if not isinstance(root, dict):
            raise DocumentError("it is not an OpenAPI document: expected a mapping with `openapi`, `info` and `paths`")
        self._swagger: dict[str, Json] | None = None
        if str(root.get("swagger")) in ("2.0", "2"):
            self._swagger = root
            root = self._values[self._name] = swagger.convert(root)
        if "swagger" in root:
            raise DocumentError(
                f"it is Swagger {shorten(str(root['swagger']))}; Swagger 2.0 and OpenAPI 3.0 to 3.2 can be imported"
            )
        version = root.get("openapi")
        # In YAML, an unquoted `openapi: 3.1` is a number.
        match = _VERSION.fullmatch(str(version)) if isinstance(version, str | float) else None
        if match is None:
            raise DocumentError(
                f"its `openapi` is {shorten(str(version))}; OpenAPI 3.0, 3.1 and 3.2 can be imported"
                if version is not None
                else "it is not an OpenAPI document: it has no `openapi` with the version"
            )
        self.minor = int(match[1])
        """The minor version: the `x` of OpenAPI `3.x`."""

    @property
    def is_swagger(self) -> bool:
        """Return whether the document is Swagger 2.0, read as OpenAPI 3.0."""
        return self._swagger is not None

    @property
    def root(self) -> LocatedValue:
        """The root document's value and location."""
        return LocatedValue(self._values[self._name], self._name, ())

    def resolve(self, at: LocatedValue) -> LocatedValue:
        """Return a reference's final target, or `at` itself if it is not a reference.

        A `description` or `summary` next to the reference replaces the target's (3.1.1, section 4.8.23).

        Raises:
            UnsupportedError: The reference does not resolve, is cyclic, or refers to a file that is not read.
        """
        beside: dict[str, Json] = {}
        reference: Json = None
        for _ in range(_MAX_HOPS):
            reference = at.value.get("$ref") if isinstance(at.value, dict) else None
            if not isinstance(reference, str):
                if beside and isinstance(at.value, dict):
                    return LocatedValue({**at.value, **beside}, at.file, at.pointer)
                return at
            if self.minor:
                beside = {key: at.value[key] for key in ("summary", "description") if key in at.value} | beside
            at = self.find_target(reference, at.file, at.pointer)
        raise UnsupportedError(f"the reference `{shorten(str(reference), _LONGEST)}` is circular")

    def follow(self, at: LocatedValue, kind: str) -> LocatedValue:
        """Resolve a reference where the specification does not allow one, but bundlers write it.

        Raises:
            UnsupportedError: See `resolve`. Also raised if the reference has siblings, because their meaning is
                undefined.
        """
        if not isinstance(at.value, dict) or not isinstance(at.value.get("$ref"), str):
            return at
        beside = [key for key in at.value if key not in ("$ref", "summary", "description") and not key.startswith("x-")]
        if beside:
            raise UnsupportedError(f"`{beside[0]}` accompanies a reference in {at.reference} (undefined in OpenAPI)")
        target = self.resolve(at)
        self.followed.setdefault((at.file, at.pointer), kind)
        return target

    def list_entries(self, at: LocatedValue, key: str) -> list[tuple[str, LocatedValue]]:
        """Return the entries of the mapping at a key, which can be a reference; empty if missing.

        Raises:
            UnsupportedError: See `follow`.
        """
        below = at.get(key)
        return [] if below is None else self.follow(below, f"`{key}`").entries

    def list_items(self, at: LocatedValue, key: str) -> list[LocatedValue]:
        """Return the items of the list at a key, which can be a reference; empty if missing.

        Raises:
            UnsupportedError: See `follow`.
        """
        below = at.get(key)
        return [] if below is None else self.follow(below, f"`{key}`").items

    def report_followed(self) -> list[str]:
        """Return a note on the references that `follow` resolved, if any."""
        kinds = Counter(self.followed.values())
        places = ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in kinds.items())
        if not kinds:
            return []
        return [f"references were followed where the specification does not allow them: in place of {places}"]

    def find_target(self, reference: str, file: str, pointer: tuple[str, ...] = ()) -> LocatedValue:
        """Return the target of a reference in `file`, at a pointer.

        References are relative to the nearest `$id` (JSON Schema 2020-12 Core, 8.2.1) or, without one, to the document.

        Raises:
            UnsupportedError: The reference does not resolve or refers to a file that is not read.
        """
        resource = self._find_resource(reference, file, pointer) if self.minor else None
        if resource is not None:
            return resource
        where, _, fragment = reference.partition("#")
        path = file
        if where:
            if _SCHEME.match(where) or where.startswith("/") or "\\" in where:
                raise UnsupportedError(f"the reference `{shorten(reference, _LONGEST)}` is not a relative path")
            if paths.is_impossible(unquote(where)):
                raise UnsupportedError(f"the reference `{shorten(reference, _LONGEST)}` is not a valid path")
            resolved = paths.resolve("", file, unquote(where))
            if resolved is None:
                raise UnsupportedError(f"the reference `{shorten(reference, _LONGEST)}` leaves the document's folder")
            path = resolved
            if self._is_alone and path != self._name:
                raise UnsupportedError(f"the reference `{shorten(reference, _LONGEST)}` is to another file")
        at = LocatedValue(self._load(path, reference), path, ())
        if fragment and not fragment.startswith("/"):
            raise UnsupportedError(f"the reference `{shorten(reference, _LONGEST)}` is to an anchor that was not found")
        # The fragment of a URI is a percent-encoded pointer (RFC 6901, section 6).
        for name in split_pointer(unquote(fragment)):
            if isinstance(at.value, dict) and name not in at.value and isinstance(at.value.get("$ref"), str):
                at = self.follow(at, f"`{at.pointer[-1]}`") if len(at.pointer) in (1, 2) else self.resolve(at)
            try:
                at = at / name
            except (KeyError, IndexError, TypeError, ValueError):
                raise UnsupportedError(f"the reference `{shorten(reference, _LONGEST)}` does not resolve") from None
        return at

    def _find_resource(self, reference: str, file: str, pointer: tuple[str, ...]) -> LocatedValue | None:
        """Resolve a reference by `$id` and `$anchor`. Return None if no schema matches."""
        resources, anchors = self._identified
        where, _, fragment = reference.partition("#")
        base = max(
            (key for key in resources.values() if key.file == file and pointer[: len(key.pointer)] == key.pointer),
            key=lambda key: len(key.pointer),
            default=None,
        )
        own = next((uri for uri, key in resources.items() if key is base), "")
        if fragment and not fragment.startswith("/"):
            is_here = where or base is not None or file == self.root.file
            return anchors.get((urljoin(own, where), unquote(fragment))) if is_here else None
        if not where and base is None:
            return None
        at = base if not where else resources.get(urljoin(own, where))
        for step in split_pointer(unquote(fragment)) if at is not None else ():
            try:
                at = at / step if at is not None else None
            except (KeyError, IndexError, TypeError, ValueError):
                return None
        return at

    @cached_property
    def _identified(self) -> tuple[dict[str, LocatedValue], dict[tuple[str, str], LocatedValue]]:
        """The root document's schemas: with an `$id`, keyed by URI; with an anchor, keyed by URI and anchor."""
        resources: dict[str, LocatedValue] = {}
        anchors: dict[tuple[str, str], LocatedValue] = {}
        is_used = any(isinstance(part.get(key), str) for part in walk(self.root.value) for key in ("$id", *_ANCHORS))
        waiting = [(self.root, "")] if is_used else []
        for at, base in waiting:  # grows during the loop
            name = at.get_field("$id")
            uri = urljoin(base, name).partition("#")[0] if isinstance(name, str) else base
            if isinstance(name, str):
                resources.setdefault(uri, at)
            for anchor in map(at.get_field, _ANCHORS):
                if isinstance(anchor, str):
                    anchors.setdefault((uri, anchor), at)
            below = (
                at.value if isinstance(at.value, dict) else range(len(at.value)) if isinstance(at.value, list) else ()
            )
            waiting += [(at / str(step), uri) for step in below]
        return resources, anchors

    def _load(self, path: str, reference: str) -> Json:
        if path not in self._values:
            try:
                if not self._reader.is_within(posixpath.join(self._folder, path), self._folder):
                    raise UnsupportedError(
                        f"the reference `{shorten(reference, _LONGEST)}` leaves the document's folder"
                    )
                value = self._read(path)
                self._values[path] = value if self._swagger is None else swagger.convert_part(value, self._swagger)
            except DocumentError as error:
                raise UnsupportedError(
                    f"the reference `{shorten(reference, _LONGEST)}` cannot be read: {error}"
                ) from error
        return self._values[path]

    def _read(self, path: str) -> Json:
        wanted = "an OpenAPI document in YAML or JSON"

        def parse(text: str) -> tuple[Json, list[Problem]]:
            if path.lower().endswith(".json"):
                return self._recover(path, text, *jsontext.parse_file(text), is_json=True)
            if not text.lstrip().startswith("{"):
                return self._recover(path, text, *yamltext.parse(text, any_keys=True), is_json=False)
            value, problems = self._recover(path, text, *jsontext.parse(text), is_json=True)
            if all(problem.code == "SW007" for problem in problems):  # numbers that YAML would read as strings
                return value, problems
            # possibly a YAML flow mapping, but JSON parsing is ten times faster
            flow, flow_problems = self._recover(path, text, *yamltext.parse(text, any_keys=True), is_json=False)
            is_yaml = path.lower().endswith((".yaml", ".yml"))
            return (flow, flow_problems) if is_yaml or not flow_problems else (value, problems)

        return document_reader.read(posixpath.join(self._folder, path), self._reader, parse, wanted).value

    def _recover(
        self, path: str, text: str, value: Json, problems: list[Problem], *, is_json: bool
    ) -> tuple[Json, list[Problem]]:
        recovered = error_recovery.recover_errors(text, problems, path, is_json=is_json) if problems else None
        if recovered is None:
            return value, problems
        self.recovered += recovered[1]
        return recovered[0], []


def read_mapping(value: Any) -> dict[str, Json]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, dict) else {}


def walk(value: Json) -> Iterator[dict[str, Json]]:
    """Yield the mappings in a value, including the value itself."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
