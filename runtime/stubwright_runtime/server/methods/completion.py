"""Completes prompt arguments and URI template variables from values in the manifest or handlers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import INVALID_PARAMS, ProtocolError
from ...values.json import is_list
from ...values.sanitizing import clean
from ..calls.invocation import answer_by_handler, compile_context
from ..core.feature import HandlerMethod, ServerContext
from ..core.request import Answer, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...package import Package
    from ...primitives import Prompt, Template

_MOST: Final = 100
"""The maximum number of values per response (MCP 2025-11-25, server/utilities/completion)."""


@dataclass(frozen=True, slots=True)
class Completing:
    """The argument to complete, as a handler receives it.

    Attributes:
        argument: The argument's name.
        value: What the user has typed so far.
        given: The values of the other arguments, by name.
    """

    argument: str
    value: str
    given: Mapping[str, str] = field(default_factory=dict[str, str])


class Completions:
    """Completes the arguments of a package's prompts and resource templates."""

    def __init__(self, package: Package) -> None:
        self._package = package

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return the handler methods required for argument completion."""
        rows: list[Template | Prompt] = [*self._package.templates.values(), *self._package.prompts.values()]
        return [
            HandlerMethod(row.completes, ("args: Completing", "ctx: Context"), "Sequence[str]")
            for row in rows
            if row.completes
        ]

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return an empty mapping, because completions have no list."""
        return {}

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the function that handles `completion/complete`."""

        async def complete(request: Request) -> dict[str, Any]:
            return await self._complete(request, server)

        return {"completion/complete": complete}

    async def _complete(self, request: Request, server: ServerContext) -> dict[str, Any]:
        reference = request.params["ref"]
        is_prompt = reference["type"] == "ref/prompt"
        section, what = ("prompts", "prompt") if is_prompt else ("resourceTemplates", "URI template")
        key: str = reference["name" if is_prompt else "uri"]
        if section not in server.lists.by_name or not server.offers(request, section, key):
            raise ProtocolError(INVALID_PARAMS, f"Unknown {what}: {clean(key)}")
        _, extension = self._package.list_entries(section)[key]
        argument, value = request.params["argument"]["name"], request.params["argument"]["value"]
        completed: Mapping[str, Any] = extension.get("complete") or {}
        offered: Sequence[str] = completed.get(argument, [])
        if offered == "handler":
            about: Mapping[str, Any] = request.params.get("context") or {}
            given: Mapping[str, str] = about.get("arguments") or {}
            row = self._package.prompts[key] if is_prompt else self._package.templates[key]
            completing, context = Completing(argument, value, given), compile_context(server, "", {})(request, key)
            values: list[str] = await answer_by_handler(
                server, row.completes or "", "completion", _validate_texts, request, completing, context
            )
        else:
            values = [text for text in offered if text.casefold().startswith(value.casefold())]
        shown = values[:_MOST]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}


def _validate_texts(value: object) -> list[str]:
    if not is_list(value) or not all(isinstance(text, str) for text in value):
        raise TypeError(f"returned a value of type {type(value).__name__}; expected a list of strings")
    return [clean(text) for text in value]
