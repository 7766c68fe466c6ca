# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""Completion: what clients may offer for an argument of a prompt or a variable of a URI template.

Takes rows as generated code has them; answers `completion/complete`. Values stand in the manifest, or come from the
handlers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mcp_types import INVALID_PARAMS

from .invocation import Method
from .parts import Answer, Host, Needed, Refused, Request
from .sanitizing import clean

if TYPE_CHECKING:
    from ..tools import Tools

Row: TypeAlias = tuple[Literal["prompt", "template"], str, str]
"""What completes, its name or URI template, and the handlers' method for the arguments that are left to them."""

_MOST: Final = 100
"""How many values one answer holds at most (MCP 2025-11-25, server/utilities/completion)."""

_SECTIONS: Final = {"prompt": "prompts", "template": "resourceTemplates"}
_KEYS: Final = {"prompts": "name", "resourceTemplates": "uriTemplate"}


@dataclass(frozen=True, slots=True)
class Completing:
    """What somebody is typing.

    Attributes:
        argument: The argument's name.
        value: What stands there so far.
        given: The other arguments, as far as they are filled in.
    """

    argument: str
    value: str
    given: Mapping[str, str] = field(default_factory=dict)


class Completions:
    """What a package completes."""

    def __init__(self, tools: Tools, rows: Sequence[Row] = ()) -> None:
        """List it.

        Args:
            tools: The package's tools, which know its manifest.
            rows: One for each prompt or template that the handlers complete something of.
        """
        self._tools = tools
        self._rows = {(kind, key): method for kind, key, method in rows}

    @cached_property
    def _ours(self) -> dict[str, dict[str, dict[str, Any]]]:
        return {
            section: {wire[key]: extension for wire, extension in self._tools.primitives(section)}
            for section, key in _KEYS.items()
        }

    def needed(self) -> list[Needed]:
        """The methods that the handlers must have."""
        return [Needed(method, ("args: Completing", "ctx: Context"), "Sequence[str]") for method in self._rows.values()]

    def listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """It has none."""
        return {}

    def answers(self, host: Host) -> Mapping[str, Answer]:
        """Its methods."""

        async def complete(request: Request) -> dict[str, Any]:
            return await self._complete(request, host)

        return {"completion/complete": complete}

    async def _complete(self, request: Request, host: Host) -> dict[str, Any]:
        reference = request.params["ref"]
        kind: Literal["prompt", "template"] = "prompt" if reference["type"] == "ref/prompt" else "template"
        section = _SECTIONS[kind]
        key: str = reference["name" if kind == "prompt" else "uri"]
        listing = host.lists.by_name.get(section)
        if listing is None or key not in listing:
            raise Refused(INVALID_PARAMS, f"Unknown {'prompt' if kind == 'prompt' else 'URI template'}: {clean(key)}")
        extension = self._ours[section][key]
        argument, value = request.params["argument"]["name"], request.params["argument"]["value"]
        offered = (extension.get("complete") or {}).get(argument, [])
        if offered == "handler":
            given = (request.params.get("context") or {}).get("arguments") or {}
            method = Method.of(host.handlers, self._rows[kind, key])
            context = host.context(request, key, "", {})
            values = await host.handled(method, _texts, Completing(argument, value, given), context=context)
        else:
            values = [text for text in offered if text.casefold().startswith(value.casefold())]
        shown = values[:_MOST]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}


def _texts(value: object) -> list[str]:
    """What a handler gave, where it is texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"it gave a value of type {type(value).__name__}; it should give a list of texts")
    return [clean(one) for one in value]
