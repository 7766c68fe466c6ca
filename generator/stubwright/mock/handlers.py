"""Mock handlers for any generated package.

A tool returns an example's output, or a value generated from its `outputSchema`. If it has neither, it returns text
that explains this. Mock tools never ask questions.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from stubwright_runtime.errors import ToolError
from stubwright_runtime.values.equality import are_equal

if TYPE_CHECKING:
    from stubwright.codegen.surface import MethodRole
    from stubwright_runtime.package import Tool

_Answer: TypeAlias = Callable[[Any], Any]
_MISSING: Any = object()


def make_handlers(
    tools: Mapping[str, Tool],
    methods: Mapping[str, tuple[MethodRole, str]],
    *,
    seed: int = 0,
    in_json: Collection[str] = (),
    pages: Mapping[str, str] = MappingProxyType({}),
) -> object:
    """Return a package's handlers.

    Args:
        tools: The package's tools.
        methods: The role of each handler method and its entry's wire name, keyed by method name.
        seed: The random seed. Generated values also depend on the tool and the arguments.
        in_json: The URIs, or URI templates, of JSON resources.
        pages: For each paginated tool's name, the result key that contains the next page's cursor.
    """
    methods_by_name: dict[str, Callable[..., Awaitable[Any]]] = {
        name: (
            _make_tool_method(_answer_tool(tools[key], seed, pages.get(key)))
            if role == "tool"
            else _make_method(_answer_primitive(name, role, in_json=key in in_json))
        )
        for name, (role, key) in methods.items()
    }
    return type("Mocked", (), methods_by_name)()


def _make_tool_method(answer: _Answer) -> Callable[..., Awaitable[Any]]:
    # The number of parameters is fixed, since inspecting `*arguments` would slow down the server's start.
    async def respond(_self: object, args: Any, _ctx: Any) -> Any:
        return answer(args)

    return respond


def _make_method(answer: _Answer) -> Callable[..., Awaitable[Any]]:
    """Return a method that computes a response from the first argument, or from None if only the context is passed."""

    async def respond(_self: object, *arguments: Any) -> Any:
        return answer(arguments[0] if len(arguments) > 1 else None)

    return respond


def _answer_tool(tool: Tool, seed: int, next_key: str | None) -> _Answer:
    def answer(args: Any) -> Any:
        from stubwright.jsonschema import instances  # imported on the first call, so that the server starts faster
        from stubwright.mock.echo import echo
        from stubwright_runtime.schema.validation import get_output_validator

        examples: Sequence[Mapping[str, Any]] = tool.extension.get("examples") or ()
        schema = tool.definition.get("outputSchema", _MISSING)
        if schema is _MISSING:
            return f"This is a mock: {tool.name} has no outputSchema, so no response can be generated."
        arguments = args.values  # `RawArguments`, or `InvalidArguments` for a tool that accepts them
        output = _find_example_output(examples, arguments)
        if output is not _MISSING:
            return output
        seed_text = json.dumps([seed, tool.name, arguments], sort_keys=True)
        try:
            instance = instances.make(schema, seed_text, formats=tool.asserts_formats, exact=tool.has_exact_formats)
        except instances.UnsatisfiableError as error:
            raise ToolError(
                f"This is a mock: no result for {tool.name} that matches its outputSchema could be generated "
                f"({error}); give the tool an example with an output."
            ) from None
        if next_key is not None:  # no next page, since clients would follow pages forever
            instance.pop(next_key, None)
        echoed = echo(instance, schema, arguments, tool.definition["inputSchema"])
        validator = get_output_validator(tool)
        return echoed if validator is None or validator.accepts(echoed) else instance

    return answer


def _find_example_output(examples: Iterable[Mapping[str, Any]], arguments: Mapping[str, Any]) -> Any:
    with_output = [example for example in examples if "output" in example]
    matching = [example for example in with_output if are_equal(example["input"], dict(arguments))]
    return (matching or with_output)[0]["output"] if with_output else _MISSING


def _answer_primitive(name: str, role: MethodRole, *, in_json: bool) -> _Answer:
    """Return a response function for a resource or prompt without content in the manifest. Completions are empty."""

    def answer(args: Any) -> Any:
        if role == "completion":
            return []
        arguments_text = (
            f" with {json.dumps(args.model_dump(mode='json'), ensure_ascii=False)}" if args is not None else ""
        )
        text = f"This is a mock: the handlers' {name} produces the real text{arguments_text}."
        return json.dumps({"mock": text}, ensure_ascii=False) if in_json and role == "resource" else text

    return answer
