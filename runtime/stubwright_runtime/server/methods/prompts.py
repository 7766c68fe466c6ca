"""Prompts. Their messages come from the manifest or handlers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ...mcp.downgrades import downgrade_block
from ...mcp.errors import INVALID_PARAMS, ProtocolError
from ...values.json import is_list
from ...values.sanitizing import SanitizeMode, clean, sanitize_text
from ...values.text import PLACEHOLDER
from ..calls.invocation import answer_by_handler, compile_context
from ..core.feature import HandlerMethod, ServerContext
from ..core.request import Answer, Request

if TYPE_CHECKING:
    from ...models.base import Model
    from ...package import Package


class Prompts:
    """A package's prompts, in the manifest's order."""

    def __init__(self, package: Package) -> None:
        self._package = package

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return the handler methods that create messages."""
        return [
            HandlerMethod(row.method, (f"args: {row.args_name}", "ctx: Context"), "Messages")
            for row in self._package.prompts.values()
            if row.method is not None
        ]

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return the definitions of the prompts."""
        return {"prompts": {name: wire for name, (wire, _) in self._package.list_entries("prompts").items()}}

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the function that handles `prompts/get`."""
        return {"prompts/get": _GetPrompt(self._package, server).get}


@dataclass(frozen=True, slots=True)
class _GetPrompt:
    """Handles `prompts/get` (MCP 2025-11-25, server/prompts, "Getting a Prompt")."""

    package: Package
    server: ServerContext

    async def get(self, request: Request) -> dict[str, Any]:
        name: str = request.params["name"]
        if not self.server.offers(request, "prompts", name):
            raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {clean(name)}")
        wire, extension = self.package.list_entries("prompts")[name]
        given: Mapping[str, str] = request.params.get("arguments") or {}
        declared = {argument["name"]: argument for argument in wire.get("arguments") or ()}
        missing = [key for key, argument in declared.items() if argument.get("required") is True and key not in given]
        if missing:
            names = ", ".join(f"'{key}'" for key in missing)
            raise ProtocolError(INVALID_PARAMS, f"Missing required arguments of {name}: {names}", {"missing": missing})
        arguments = {key: value for key, value in given.items() if key in declared}
        row = self.package.prompts[name]
        if row.method is None:
            messages = [self._fill_message(message, arguments) for message in extension["messages"]]
        else:
            context = compile_context(self.server, row.stem, extension)(request, name)
            model: type[Model] = self.package.load_model(f"prompts.{row.method}", row.args_name)
            read = partial(_render_messages, sanitize_mode=self.server.sanitize_mode)
            messages = await answer_by_handler(
                self.server, row.method, "prompt", read, request, model.model_validate(arguments), context
            )
        for number, message in enumerate(messages, 1):
            message["content"] = downgrade_block(message["content"], request.revision, number)
        described = wire.get("description")
        return {"messages": messages} if described is None else {"description": described, "messages": messages}

    def _fill_message(self, message: Mapping[str, Any], arguments: Mapping[str, str]) -> dict[str, Any]:
        annotations = message.get("annotations")
        content = {**self._fill_content(message, arguments), **({"annotations": annotations} if annotations else {})}
        return {"role": message.get("role", "user"), "content": content}

    def _fill_content(self, message: Mapping[str, Any], arguments: Mapping[str, str]) -> dict[str, Any]:
        if "text" in message:
            return {"type": "text", "text": self._fill(message["text"], arguments)}
        for kind in ("image", "audio"):
            if kind in message:
                part = message[kind]
                return {"type": kind, "data": self._base64(part), "mimeType": part["mimeType"]}
        part = message["resource"]
        resource = {"uri": self._fill(part["uri"], arguments)}
        if "mimeType" in part:
            resource["mimeType"] = part["mimeType"]
        if "text" in part:
            resource["text"] = self._fill(part["text"], arguments)
        elif "file" in part and not part["binary"]:
            resource["text"] = self.package.read_data(part["file"]).decode()
        else:
            resource["blob"] = self._base64(part)
        return {"type": "resource", "resource": resource}

    def _base64(self, part: Mapping[str, Any]) -> str:
        data: str = part["data"] if "data" in part else base64.b64encode(self.package.read_data(part["file"])).decode()
        return data

    def _fill(self, text: str, arguments: Mapping[str, str]) -> str:
        """Replace each `{{name}}` in `text`. Placeholders in an argument's value are not replaced."""
        return sanitize_text(
            PLACEHOLDER.sub(lambda match: arguments.get(match[1], ""), text), self.server.sanitize_mode
        )


def _render_messages(value: object, sanitize_mode: SanitizeMode) -> list[dict[str, Any]]:
    parts = value if is_list(value) else [value]
    return [_render(part, sanitize_mode) for part in parts]


def _render(part: object, sanitize_mode: SanitizeMode) -> dict[str, Any]:
    if isinstance(part, str):
        return {"role": "user", "content": {"type": "text", "text": sanitize_text(part, sanitize_mode)}}
    from ..core.content_blocks import encode_block
    from ..handlers.messages import as_message

    message = as_message(part)
    return {"role": message.role, "content": encode_block(message.content, sanitize_mode)}
