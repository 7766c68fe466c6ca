"""Resources and resource templates. Their contents come from the manifest, the package's files or handlers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND, ProtocolError
from ...mcp.revisions import Revision
from ...mcp.uri_templates import UriTemplate
from ...mcp.vocabulary import PAGES
from ...values.json import is_list
from ...values.sanitizing import SanitizeMode, clean, sanitize_text
from ..calls.invocation import answer_by_handler, compile_context
from ..core.feature import HandlerMethod, ServerContext
from ..core.request import Answer, Request
from ..features.large_results import find_result

if TYPE_CHECKING:
    from ...models.base import Model
    from ...package import Package
    from ...primitives import Template


class Resources:
    """A package's resources and resource templates, in the manifest's order."""

    def __init__(self, package: Package) -> None:
        self._package = package

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return the handler methods that read resources."""
        own = [row.method for row in self._package.resources.values() if row.method is not None]
        return [HandlerMethod(method, ("ctx: Context",), "ResourceContents") for method in own] + [
            HandlerMethod(row.method, (f"args: {row.params_name}", "ctx: Context"), "ResourceContents")
            for row in self._package.templates.values()
        ]

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return the definitions of the resources and of the resource templates."""
        return {
            section: {key: wire for key, (wire, _) in self._package.list_entries(section).items()}
            for section in ("resources", "resourceTemplates")
        }

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the functions that handle `resources/read` and `resources/subscribe`."""
        reading = _ReadResource(self._package, server)
        return {"resources/read": reading.read, "resources/subscribe": reading.subscribe}


_OWN_HINTS: Final = {"ttlMs": 0, "cacheScope": "private"}
"""The cache hints of contents from handlers: no caching, because they may depend on the caller and the time."""


@dataclass(frozen=True, slots=True)
class _ReadResource:
    """Handles `resources/read` and `resources/subscribe` (MCP 2025-11-25, server/resources)."""

    package: Package
    server: ServerContext

    async def read(self, request: Request) -> dict[str, Any]:
        uri: str = request.params["uri"]
        listing = self.server.lists.by_name["resources"]
        contents = None
        hints = _OWN_HINTS
        if self.server.offers(request, "resources", uri):
            if self.package.resources[uri].method is None:
                hints = self.server.lists.hints
            contents = await self._read_listed(uri, request)
        elif not listing.has(uri):  # a hidden resource cannot be read through a template either
            contents = await self._read_large_result(uri, request) or await self._read_matching(uri, request)
        if contents is None:
            raise refuse_unknown(uri, request.revision)
        result: dict[str, Any] = {"contents": contents}
        return {**result, **hints} if request.revision.has("cache_hints") else result

    async def subscribe(self, request: Request) -> dict[str, Any]:
        """Subscribe the caller to updates of a resource (MCP 2025-11-25, server/resources, "Subscriptions")."""
        uri: str = request.params["uri"]
        is_listed = self.server.lists.by_name["resources"].has(uri)
        if not (
            self.server.offers(request, "resources", uri)
            or (not is_listed and (self._match(uri, request) or await self._read_large_result(uri, request)))
        ):
            raise refuse_unknown(uri, request.revision)
        await request.channel.subscribe(uri)
        return {}

    async def _read_large_result(self, uri: str, request: Request) -> list[dict[str, Any]] | None:
        """Return a tool result that was too large for its response, or `None` if no result is stored at the URI."""
        result = await find_result(self.server.store, request.principal, uri)
        if result is None:
            return None
        data, mime_type = result
        is_text = mime_type.startswith("text/") or mime_type == "application/json"
        if not is_text:
            return [_build_contents(uri, mime_type, blob=data)]
        return [_build_contents(uri, mime_type, text=clean(data.decode("utf-8", "replace")))]

    async def _read_listed(self, uri: str, request: Request) -> list[dict[str, Any]] | None:
        wire, extension = self.package.list_entries("resources")[uri]
        mime_type = wire.get("mimeType")
        method = self.package.resources[uri].method
        if method is not None:
            context = compile_context(self.server, "", {})(request, uri)
            read = partial(_encode, uri=uri, mime_type=mime_type, sanitize_mode=self.server.sanitize_mode)
            contents = await answer_by_handler(self.server, method, "resource", read, request, context)
        elif "text" in extension:
            contents = [_build_contents(uri, mime_type, text=extension["text"])]
        elif extension["binary"]:
            contents = [_build_contents(uri, mime_type, blob=self.package.read_data(extension["file"]))]
        else:
            contents = [_build_contents(uri, mime_type, text=self.package.read_data(extension["file"]).decode())]
        return _describe_page(contents, uri, wire)

    async def _read_matching(self, uri: str, request: Request) -> list[dict[str, Any]] | None:
        match = self._match(uri, request)
        if match is None:
            return None
        row, values = match
        wire, extension = self.package.list_entries("resourceTemplates")[row.uri]
        model: type[Model] = self.package.load_model(f"resources.{row.method}", row.params_name)
        context = compile_context(self.server, row.stem, extension)(request, uri)
        read = partial(_encode, uri=uri, mime_type=wire.get("mimeType"), sanitize_mode=self.server.sanitize_mode)
        contents = await answer_by_handler(
            self.server, row.method, "resource", read, request, model.model_validate(values), context
        )
        return _describe_page(contents, uri, wire)

    def _match(self, uri: str, request: Request) -> tuple[Template, dict[str, str | list[str]]] | None:
        for row in self.package.templates.values():
            if self.server.offers(request, "resourceTemplates", row.uri):
                values = UriTemplate.parse(row.uri).match(uri)
                if values is not None:
                    return row, values
        return None


def _describe_page(
    contents: list[dict[str, Any]] | None, uri: str, wire: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """Return a resource's contents. If the resource is an app page, add the page's `_meta` to the contents.

    Hosts expect `_meta` in the contents (MCP Apps, SEP-1865).
    """
    meta: Mapping[str, Any] = wire.get("_meta") or {}
    if not meta or not contents or not uri.startswith(PAGES):
        return contents
    return [{**each, "_meta": {**meta, **each.get("_meta", {})}} for each in contents]


def refuse_unknown(uri: str, revision: Revision) -> ProtocolError:
    """Return the error for an unknown URI. MCP 2025-11-25 and earlier have their own code for it (server/resources)."""
    code = INVALID_PARAMS if revision.has("stateless") else RESOURCE_NOT_FOUND
    return ProtocolError(code, f"Resource not found: {clean(uri)}", {"uri": uri})


def _encode(value: object, uri: str, mime_type: str | None, sanitize_mode: SanitizeMode) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    parts = value if is_list(value) else [value]
    return [_encode_part(part, uri, mime_type, sanitize_mode) for part in parts]


def _encode_part(value: object, uri: str, mime_type: str | None, sanitize_mode: SanitizeMode) -> dict[str, Any]:
    if isinstance(value, str):
        return _build_contents(uri, mime_type, text=sanitize_text(value, sanitize_mode))
    if isinstance(value, memoryview):
        value = value.tobytes()
    if isinstance(value, bytes | bytearray):
        return _build_contents(uri, mime_type, blob=bytes(value))
    from mcp_types import (
        BlobResourceContents,
        EmbeddedResource,
        TextResourceContents,
    )

    from ..core.content_blocks import encode_contents

    if isinstance(value, EmbeddedResource):
        value = value.resource
    if not isinstance(value, TextResourceContents | BlobResourceContents):
        raise TypeError(
            f"returned a value of type {type(value).__name__}; expected a string, bytes, or resource contents"
        )
    return encode_contents(value, sanitize_mode)


def _build_contents(
    uri: str, mime_type: str | None, *, text: str | None = None, blob: bytes | None = None
) -> dict[str, Any]:
    fields = {"uri": uri} if mime_type is None else {"uri": uri, "mimeType": mime_type}
    return {**fields, "text": text} if text is not None else {**fields, "blob": base64.b64encode(blob or b"").decode()}
