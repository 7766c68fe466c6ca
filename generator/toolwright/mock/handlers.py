"""Handlers without logic, for any generated package.

Takes a package's tools and the parts beside them; gives an object with each method that its server needs. A tool
answers with one of its examples, else with a value made from its `outputSchema`, else with a text that says what it is.
It never asks anybody anything.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from toolwright.mock import values
from toolwright.runtime.equality import same
from toolwright.runtime.errors import ToolError

if TYPE_CHECKING:
    from toolwright.runtime.package import Tool
    from toolwright.runtime.server.parts import Needed, Part

_Answer: TypeAlias = Callable[[Any], Any]
_MISSING: Any = object()


def mocked(tools: Mapping[str, Tool], parts: Sequence[Part], *, seed: int = 0) -> object:
    """The handlers of a package.

    Args:
        tools: The package's tools.
        parts: The parts of its server, the tools among them.
        seed: What made values depend on, beside the tool and its arguments.
    """
    by_method = {tool.method: tool for tool in tools.values()}
    needed = {one.name: one for part in parts for one in part.needed()}
    methods = {
        name: _method(one, _tool(by_method[name], seed) if name in by_method else _primitive(one))
        for name, one in needed.items()
    }
    return type("Mocked", (), methods)()


def _method(needed: Needed, answer: _Answer) -> Callable[..., Awaitable[Any]]:
    """A method that takes what the server gives, and answers from the first of it; the context is no argument."""
    if len(needed.parameters) == 1:

        async def alone(_self: object, _ctx: object) -> Any:
            return answer(None)

        return alone

    async def method(_self: object, args: Any, _ctx: object) -> Any:
        return answer(args)

    return method


def _tool(tool: Tool, seed: int) -> _Answer:
    examples: Sequence[Mapping[str, Any]] = tool.extension.get("examples") or ()
    schema = tool.definition.get("outputSchema", _MISSING)

    def answer(args: Any) -> Any:
        if schema is _MISSING:
            return f"This is a mock: {tool.name} has no outputSchema, and so no answer can be made up."
        arguments = args.model_dump(mode="json")
        found = _example(examples, arguments)
        if found is not _MISSING:
            return found
        own = json.dumps([seed, tool.name, arguments], sort_keys=True)
        try:
            return values.make(schema, own, formats=tool.asserts_formats)
        except values.UnmakeableError as error:
            raise ToolError(
                f"This is a mock, and no result of {tool.name} could be made up that its outputSchema accepts "
                f"({error}); give the tool an example with an output."
            ) from None

    return answer


def _example(examples: Iterable[Mapping[str, Any]], arguments: Mapping[str, Any]) -> Any:
    """The output of the example that has these arguments, else of the first one that has an output."""
    shown = [example for example in examples if "output" in example]
    meant = [example for example in shown if same(example["input"], arguments)]
    return (meant or shown)[0]["output"] if shown else _MISSING


def _primitive(needed: Needed) -> _Answer:
    """What a resource or a prompt says that the manifest has no content for; nothing completes."""

    def answer(args: Any) -> Any:
        if needed.returns == "Sequence[str]":
            return []
        given = f" with {json.dumps(args.model_dump(mode='json'), ensure_ascii=False)}" if args is not None else ""
        return f"This is a mock: the handlers' {needed.name} says what stands here{given}."

    return answer
