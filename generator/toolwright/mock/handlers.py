"""Handlers without logic, for any generated package.

Takes a package's tools and the methods that its handlers have; gives an object with all of them. A tool
answers with one of its examples, else with a value made from its `outputSchema`, else with a text that says what it is.
It never asks anybody anything.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from toolwright.mock import values
from toolwright_runtime.errors import ToolError
from toolwright_runtime.values.equality import are_equal

if TYPE_CHECKING:
    from toolwright.codegen.surface import MethodRole
    from toolwright_runtime.package import Tool

_Answer: TypeAlias = Callable[[Any], Any]
_MISSING: Any = object()


def mocked(
    tools: Mapping[str, Tool],
    methods: Mapping[str, tuple[MethodRole, str]],
    *,
    seed: int = 0,
    in_json: Collection[str] = (),
) -> object:
    """The handlers of a package.

    Args:
        tools: The package's tools.
        methods: The handlers' methods by name: what each does, and what it does it for, on the wire.
        seed: What made values depend on, beside the tool and its arguments.
        in_json: The URIs, or URI templates, of the resources that are JSON.
    """
    made = {
        name: _method(_tool(tools[key], seed) if role == "tool" else _primitive(name, role, in_json=key in in_json))
        for name, (role, key) in methods.items()
    }
    return type("Mocked", (), made)()


def _method(answer: _Answer) -> Callable[..., Awaitable[Any]]:
    """A method that answers from the arguments that the server gives, if there are some; the context comes last."""

    async def method(_self: object, *given: Any) -> Any:
        return answer(given[0] if len(given) > 1 else None)

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
    meant = [example for example in shown if are_equal(example["input"], dict(arguments))]
    return (meant or shown)[0]["output"] if shown else _MISSING


def _primitive(name: str, role: MethodRole, *, in_json: bool) -> _Answer:
    """What a resource or a prompt says that the manifest has no content for; nothing completes."""

    def answer(args: Any) -> Any:
        if role == "completion":
            return []
        given = f" with {json.dumps(args.model_dump(mode='json'), ensure_ascii=False)}" if args is not None else ""
        words = f"This is a mock: the handlers' {name} says what stands here{given}."
        return json.dumps({"mock": words}, ensure_ascii=False) if in_json and role == "resource" else words

    return answer
