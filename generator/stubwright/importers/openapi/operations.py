"""Reads the operations in an OpenAPI document (3.0.4, 3.1.1, 3.2.0, "Path Item Object" and "Operation Object")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from stubwright import http, naming
from stubwright.importers.document_reader import DocumentError
from stubwright.importers.openapi import descriptions
from stubwright.importers.openapi.documents import LocatedValue, UnsupportedError, read_mapping
from stubwright.importers.openapi.media import is_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.importers.openapi.documents import Documents
    from stubwright.ir import Json

In: TypeAlias = Literal["path", "query", "header", "cookie"]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "query")
"""The supported methods, in the specification's order; `query` is new in 3.2."""

_VERBS: Final = {
    "get": "Read",
    "head": "Check",
    "options": "Ask what can be done with",
    "post": "Post to",
    "put": "Replace",
    "patch": "Change",
    "delete": "Delete",
    "query": "Search",
}
_VERSION: Final = re.compile(r"v?\d+([._]\d+)*|api|rest", re.IGNORECASE)
"""Path segments that do not describe the operation."""

_LONGEST_TITLE: Final = 80
"""The maximum title length, since some summaries are paragraphs."""

_UNCALLED = ("trace", "additionalOperations")
_PLACES = ("path", "query", "header", "cookie")
_OWN_HEADERS = frozenset({"accept", "authorization", "content-type"})
"""Headers that are ignored as parameters (3.1.1, section 4.8.12.2)."""


_CREDENTIAL_HEADERS: Final = frozenset({"cookie"})
"""Headers that cannot be arguments, because security schemes set them."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter. `content` is the media type of the value if the parameter has a media type instead of a `style`."""

    name: str
    where: In
    required: bool
    style: str
    explode: bool
    reserved: bool
    content: str | None
    schema: LocatedValue | None
    description: str | None
    deprecated: bool
    example: Json


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `item` is the path item that contains it."""

    method: str
    path: str
    at: LocatedValue
    item: LocatedValue

    @property
    def id(self) -> str | None:
        """The operation's `operationId`."""
        operation_id = self.at.get_field("operationId")
        return operation_id if isinstance(operation_id, str) and operation_id.strip() else None

    @property
    def tags(self) -> tuple[str, ...]:
        """The operation's tags."""
        tags = self.at.get_field("tags")
        return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()

    @property
    def label(self) -> str:
        """The operation's name in notes."""
        name = f"{self.method.upper()} {self.path}"
        return f"`{self.id}` ({name})" if self.id else f"`{name}`"

    @property
    def description(self) -> str:
        """The operation's summary and description, without repetition.

        If both are missing, words from the operation's path.
        """
        values = [self.at.get_field("summary") or self.item.get_field("summary")]
        values.append(self.at.get_field("description") or self.item.get_field("description"))
        texts = dict.fromkeys(text.strip() for text in values if isinstance(text, str) and text.strip())
        summary = next(iter(texts), "")
        if len(texts) == 2 and list(texts)[1].startswith(summary.rstrip(".")):
            del texts[summary]
        return "\n\n".join(texts) or f"{describe(self.method, self.path)} ({self.method.upper()} {self.path})."

    @property
    def title(self) -> str:
        """The operation's summary in one line, for people.

        If the summary is missing, words from the operation's path.
        """
        summary = self.at.get_field("summary") or self.item.get_field("summary")
        line = " ".join(summary.split()).rstrip(".").rstrip() if isinstance(summary, str) else ""
        return descriptions.truncate(line or describe(self.method, self.path), _LONGEST_TITLE)


def describe(method: str, path: str) -> str:
    """Describe an operation by its method and path, for models."""
    steps = [step for step in path.partition("?")[0].split("/") if step]
    nouns = [step for step in steps if not http.VARIABLE.search(step) and not _VERSION.fullmatch(step)]
    names = [name for step in steps for name in http.VARIABLE.findall(step)]
    words = " of ".join(" ".join(naming.split_words(noun)).lower() or noun for noun in reversed(nouns))
    by = f", by {' and '.join(names)}" if names else ""
    subject = words or ("the resource" if names else "the root")
    return f"{_VERBS.get(method, method.upper())} {subject}{by}"


def list_operations(documents: Documents, notes: list[str]) -> Iterator[Operation]:
    """Yield the operations in the document's order, and add a note for each operation that cannot be called.

    Raises:
        DocumentError: The document's `paths` cannot be read.
    """
    try:
        paths = documents.list_entries(documents.root, "paths")
    except UnsupportedError as error:
        raise DocumentError(f"its `paths` cannot be read: {error}") from error
    if not paths and not documents.root.get_field("webhooks"):
        notes.append("the document has no `paths`, so it has no operations")
    for path, entry in paths:
        if path.startswith("x-"):
            continue
        try:
            item = _resolve_item(documents, entry)
        except UnsupportedError as error:
            notes.append(f"`{path}` was omitted: {error}")
            continue
        for method in item.value:
            if method in METHODS and (method != "query" or documents.minor >= 2):
                try:
                    at = documents.follow(item / method, "an operation")
                except UnsupportedError as error:
                    notes.append(f"`{method.upper()} {path}` was omitted: {error}")
                    continue
                if isinstance(at.value, dict):
                    yield Operation(method, path, at, item)
            elif method in _UNCALLED and item.value[method]:
                others = "" if method == "trace" else f" ({', '.join(read_mapping(item.value[method]))})"
                notes.append(f"`{method}` of `{path}`{others} was omitted: tools cannot call it")
    webhooks = read_mapping(documents.root.get_field("webhooks"))
    if webhooks:
        notes.append(f"webhooks were omitted, because the API calls them: {', '.join(webhooks)}")


def _resolve_item(documents: Documents, entry: LocatedValue) -> LocatedValue:
    """Return a path item, after resolving an item that is a reference (3.1.1, section 4.8.9)."""
    if not isinstance(entry.value, dict):
        raise UnsupportedError("it is not a mapping")
    if "$ref" not in entry.value:
        return entry
    target = documents.resolve(LocatedValue({"$ref": entry.value["$ref"]}, entry.file, entry.pointer))
    if not isinstance(target.value, dict):
        raise UnsupportedError("its reference does not refer to a path item")
    if any(key in entry.value for key in (*METHODS, "parameters", "servers")):
        raise UnsupportedError("it has both a reference and operations, which the specification does not define")
    return target


def list_places(documents: Documents, operation: Operation) -> list[tuple[str, str]]:
    """Return the locations and names of the parameters of an operation and its path item.

    Raises:
        UnsupportedError: A reference does not resolve.
    """
    listed = [
        entry for holder in (operation.item, operation.at) for entry in documents.list_items(holder, "parameters")
    ]
    described = [documents.resolve(entry) for entry in listed]
    return [(str(at.get_field("in")), str(at.get_field("name"))) for at in described]


def list_parameters(documents: Documents, operation: Operation) -> list[Parameter]:
    """Return the parameters of an operation and its path item; on a conflict, the operation's parameter wins.

    Raises:
        UnsupportedError: A parameter has an unsupported feature.
    """
    by_place: dict[tuple[str, str], Parameter] = {}
    for holder in (operation.item, operation.at):
        for entry in documents.list_items(holder, "parameters"):
            at = documents.resolve(entry)
            name, where = at.get_field("name"), at.get_field("in")
            if not isinstance(name, str) or not name:
                raise UnsupportedError("a parameter has no name")
            if where not in _PLACES:
                raise UnsupportedError(f"the parameter `{name}` has the unsupported location `{where}`")
            if where == "header" and (name.lower() in _OWN_HEADERS or http.is_reserved(name) or name.lower() == "host"):
                continue
            if where == "header" and name.lower() in _CREDENTIAL_HEADERS:
                continue
            if where == "header" and (http.steers(name) or not http.TOKEN.fullmatch(name)):
                raise UnsupportedError(f"the parameter `{name}` cannot be a header")
            by_place[where, name] = _read_parameter(documents, at, name, cast("In", where))
    return list(by_place.values())


_DELIMITED: Final = ("spaceDelimited", "pipeDelimited", "tabDelimited")
_STYLES: dict[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix", *_DELIMITED),
    "query": ("form", *_DELIMITED, "deepObject"),
    "header": ("simple", *_DELIMITED),
    "cookie": ("form", "cookie"),
}
"""The value styles by parameter location; the first is the default (3.2.0, "Style Values").

Delimited styles in paths and headers come from Swagger 2.0 (`collectionFormat`).
"""


def _read_parameter(documents: Documents, at: LocatedValue, name: str, where: In) -> Parameter:
    content = list_media_types(documents, at)
    media = schema = None
    if content:
        if len(content) > 1:
            raise UnsupportedError(f"the parameter `{name}` has several media types")
        media, described = content[0]
        if not is_json(media):
            raise UnsupportedError(f"the parameter `{name}` has the unsupported media type `{media}`")
        schema = described.get("schema")
    else:
        schema = at.get("schema")
    style = at.get_field("style") or _STYLES[where][0]
    if style not in _STYLES[where]:
        raise UnsupportedError(f"the parameter `{name}` has the unsupported style `{style}`")
    explode = at.get_field("explode")
    described_as = at.get_field("description")
    return Parameter(
        name=name,
        where=where,
        required=where == "path" or at.get_field("required") is True,
        style=style,
        explode=explode if isinstance(explode, bool) else style in ("form", "cookie"),
        reserved=at.get_field("allowReserved") is True,
        content=media,
        schema=schema,
        description=described_as if isinstance(described_as, str) and described_as.strip() else None,
        deprecated=at.get_field("deprecated") is True,
        example=at.get_field("example"),
    )


def find_body(documents: Documents, operation: Operation) -> LocatedValue | None:
    """Return an operation's request body, or None.

    Raises:
        UnsupportedError: The body's reference does not resolve.
    """
    reference = operation.at.get("requestBody")
    if reference is None or reference.value is None:
        return None
    at = documents.resolve(reference)
    if not isinstance(at.value, dict):
        raise UnsupportedError("its `requestBody` is not a mapping")
    return at


def list_responses(documents: Documents, operation: Operation) -> list[LocatedValue]:
    """Return the successful responses (`200`, `2XX`), which can be references.

    Raises:
        UnsupportedError: `responses` is a reference that does not resolve.
    """
    listed = documents.list_entries(operation.at, "responses")
    return [entry for status, entry in listed if status[:1] == "2" and len(status) == 3]


def list_examples(documents: Documents, at: LocatedValue) -> Iterator[Json]:
    """Yield the examples for a media type or a parameter ("Media Type Object", "Example Object")."""
    if (plain := at.get("example")) is not None:
        yield plain.value
    for _, example in at.list_entries("examples"):
        try:
            resolved = documents.resolve(example)
        except UnsupportedError:
            continue  # the example is unavailable
        for key in ("value", "dataValue"):
            if (value := resolved.get(key)) is not None:
                yield value.value


def list_media_types(documents: Documents, at: LocatedValue) -> list[tuple[str, LocatedValue]]:
    """Return the entries of a `content`, which can be references (3.2.0, section 4.14).

    Raises:
        UnsupportedError: A reference does not resolve.
    """
    return [(media, documents.resolve(entry)) for media, entry in documents.list_entries(at, "content")]
