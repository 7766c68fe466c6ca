"""The resources of one generated package, and the templates of their URIs.

Takes rows as generated code has them; answers `resources/list`, `resources/templates/list` and `resources/read`. What
the manifest holds, or a file inside the package, is read as it is; all else comes from the handlers.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcp.shared.uri_template import UriTemplate
from mcp_types import INVALID_PARAMS, BlobResourceContents, EmbeddedResource, TextResourceContents

from ..revisions import FIRST_STATELESS
from .content import checked_base64
from .invocation import Method
from .parts import Answer, Host, Needed, Refused, Request
from .sanitizing import clean, mirrored

if TYPE_CHECKING:
    from ..model import Model
    from ..tools import Tools

Row: TypeAlias = tuple[str, str | None]
"""URI, and the handlers' method; `None` where the manifest has the content."""

TemplateRow: TypeAlias = tuple[str, str, str, str]
"""URI template, the handlers' method, module below `models`, class of the parameters."""

Contents: TypeAlias = (
    str
    | bytes
    | EmbeddedResource
    | TextResourceContents
    | BlobResourceContents
    | Sequence[str | bytes | EmbeddedResource | TextResourceContents | BlobResourceContents]
    | None
)
"""What a resource holds: text, bytes, contents with a URI and a type of their own, or a list of these; `None` says that
there is no such resource."""

_NOT_FOUND: Final = -32002
"""The code up to 2025-11-25 (server/resources, "Error Handling"); from 2026-07-28 it is "Invalid params"."""


class Resources:
    """All resources and resource templates of a package, in the manifest's order."""

    def __init__(self, tools: Tools, rows: Sequence[Row] = (), templates: Sequence[TemplateRow] = ()) -> None:
        """List them.

        Args:
            tools: The package's tools, which know its manifest.
            rows: One for each resource.
            templates: One for each resource template.
        """
        self._tools = tools
        self._rows = dict(rows)
        self._templates = [_Template(*row, tools.package) for row in templates]

    def needed(self) -> list[Needed]:
        """The methods that the handlers must have."""
        own = [method for method in self._rows.values() if method is not None]
        return [Needed(method, ("ctx: Context",), "Contents") for method in own] + [
            Needed(template.method, (f"params: {template.params}", "ctx: Context"), "Contents")
            for template in self._templates
        ]

    def listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """The two lists."""
        return {
            "resources": {key: wire for key, (wire, _) in self._entries["resources"].items()},
            "resourceTemplates": {key: wire for key, (wire, _) in self._entries["resourceTemplates"].items()},
        }

    def answers(self, host: Host) -> Mapping[str, Answer]:
        """Its methods."""
        return {"resources/read": _Reading(self, host).read}

    def match(self, uri: str, host: Host) -> tuple[_Template, dict[str, str | list[str]]] | None:
        """The first template that is on and fits a URI, with the values of its variables."""
        for template in self._templates:
            if template.text in host.lists.by_name["resourceTemplates"]:
                values = template.parsed.match(uri)
                if values is not None:
                    return template, values
        return None

    def method(self, uri: str) -> str | None:
        """The handlers' method that reads a resource, if one does."""
        return self._rows.get(uri)

    def entry(self, section: str, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes on the wire of a resource or a template, and what is ours."""
        return self._entries[section][key]

    def data(self, path: str) -> bytes:
        """A file inside the package."""
        return self._tools.data(path)

    @cached_property
    def _entries(self) -> dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]]:
        keys = {"resources": "uri", "resourceTemplates": "uriTemplate"}
        return {
            section: {wire[key]: (wire, extension) for wire, extension in self._tools.primitives(section)}
            for section, key in keys.items()
        }


@dataclass(frozen=True)
class _Template:
    text: str
    method: str
    module: str
    params: str
    package: str

    @cached_property
    def parsed(self) -> UriTemplate:
        """The template, ready to match."""
        return UriTemplate.parse(self.text)

    @cached_property
    def model(self) -> type[Model]:
        """The class of its parameters."""
        found: type[Model] = getattr(importlib.import_module(f"{self.package}.models.{self.module}"), self.params)
        return found


_OWN_HINTS: Final = {"ttlMs": 0, "cacheScope": "private"}
"""What clients may keep of what a handler gives: nothing, since it may be another for each caller and at each time."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Answers `resources/read` (MCP 2025-11-25, server/resources, "Reading Resources")."""

    resources: Resources
    host: Host

    async def read(self, request: Request) -> dict[str, Any]:
        """The contents of what a URI leads to."""
        uri: str = request.params["uri"]
        listing = self.host.lists.by_name["resources"]
        contents = None
        hints = _OWN_HINTS
        if uri in listing:
            if self.resources.method(uri) is None:
                hints = self.host.lists.hints
            contents = await self._static(uri, request)
        elif not listing.has(uri):  # one that is switched off is not there for a template either
            contents = await self._matched(uri, request)
        if contents is None:
            raise not_found(uri, request.revision)
        result: dict[str, Any] = {"contents": contents}
        return {**result, **hints} if request.revision >= FIRST_STATELESS else result

    async def _static(self, uri: str, request: Request) -> list[dict[str, Any]] | None:
        wire, extension = self.resources.entry("resources", uri)
        mime_type = wire.get("mimeType")
        method = self.resources.method(uri)
        if method is not None:
            context = self.host.context(request, uri, "", {})
            handler = Method.of(self.host.handlers, method)
            return await self.host.handled(handler, lambda value: _contents(value, uri, mime_type), context=context)
        if "text" in extension:
            return [_one(uri, mime_type, text=extension["text"])]
        data = self.resources.data(extension["file"])
        return [_one(uri, mime_type, blob=data) if extension["binary"] else _one(uri, mime_type, text=data.decode())]

    async def _matched(self, uri: str, request: Request) -> list[dict[str, Any]] | None:
        found = self.resources.match(uri, self.host)
        if found is None:
            return None
        template, values = found
        wire, extension = self.resources.entry("resourceTemplates", template.text)
        context = self.host.context(request, uri, template.params.removesuffix("Params"), extension)
        handler = Method.of(self.host.handlers, template.method)
        return await self.host.handled(
            handler,
            lambda value: _contents(value, uri, wire.get("mimeType")),
            template.model.model_validate(values),
            context=context,
        )


def not_found(uri: str, revision: str) -> Refused:
    """The error for a URI that leads nowhere, as the revision has it."""
    code = INVALID_PARAMS if revision >= FIRST_STATELESS else _NOT_FOUND
    return Refused(code, f"Resource not found: {clean(uri)}", {"uri": uri})


def _contents(value: object, uri: str, mime_type: str | None) -> list[dict[str, Any]] | None:
    """What a handler gave, as it goes on the wire; `None` is no such resource."""
    if value is None:
        return None
    parts = [*value] if isinstance(value, list | tuple) else [value]
    return [_part(part, uri, mime_type) for part in parts]


def _part(value: object, uri: str, mime_type: str | None) -> dict[str, Any]:
    if isinstance(value, str):
        return _one(uri, mime_type, text=clean(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return _one(uri, mime_type, blob=bytes(value))
    if isinstance(value, EmbeddedResource):
        value = value.resource
    if isinstance(value, BlobResourceContents):
        checked_base64(value.blob)
    elif not isinstance(value, TextResourceContents):
        raise TypeError(f"it gave a value of type {type(value).__name__}; it should give text, bytes, or contents")
    wire: dict[str, Any] = mirrored(value.model_dump(by_alias=True, mode="json", exclude_none=True))[0]
    return {**wire, "text": clean(wire["text"])} if "text" in wire else wire


def _one(uri: str, mime_type: str | None, *, text: str | None = None, blob: bytes | None = None) -> dict[str, Any]:
    said = {"uri": uri} if mime_type is None else {"uri": uri, "mimeType": mime_type}
    return {**said, "text": text} if text is not None else {**said, "blob": base64.b64encode(blob or b"").decode()}
