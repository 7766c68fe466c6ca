"""One call of a tool, from its arguments to its result.

Takes the handlers object and, for each call, a tool, its arguments and a context; gives the result as it goes on the
wire in the newest revision. Whatever happens in a handler ends as a result; only cancellation and questions leave.
It knows no transport and nothing of the protocol's library but its content blocks.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from mcp_types import ContentBlock

from ..errors import is_tool_error
from ..model import Model, Root
from ..nesting import DEEPEST, DepthError, is_too_deep
from ..validation import Validator, input_validator, output_validator
from ..values import is_group, is_list, is_object
from .invocation import Method
from .returns import Reply, Tolerated, Unstructured
from .sanitizing import EXTENT, Cleaned, Extent, block, clean, cleaned, mirrored, said, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..package import Tool
    from .context import Context
    from .parts import Host


_RESOURCES: Final = {"resource_link": "a resource link", "resource": "an embedded resource"}


class Dispatcher:
    """The handlers, ready to be called."""

    def __init__(self, host: Host) -> None:
        """Take what the parts of the server share.

        Without resources, the first link to one, and the first that is embedded, is told to the log: its reader may not
        be able to follow it (MCP 2025-11-25, server/tools, "Embedded Resources").
        """
        self._handlers = host.handlers
        self._log = host.log
        self._routes: dict[Tool, _Route] = {}
        self._may_link = "resources" in host.lists.by_name
        self._confirmation = host.package.feature("confirmation", "server.confirmation")

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any] | None, context: Context, count: Cleaned | None = None
    ) -> dict[str, Any]:
        """Call a tool.

        Args:
            tool: The tool.
            arguments: What the caller sent; absent arguments are an empty object.
            context: What the handler gets as `ctx`.
            count: Learns what was cleaned out of the result.

        Returns:
            `content`, and `structuredContent` where the tool has an `outputSchema`; or `content` and `isError`.

        Raises:
            MissingCapability: The handler asks what the client cannot answer.
            Suspended: The handler waits for an answer.
        """
        sent: tuple[dict[str, Any], int | None] = whole(arguments) if arguments else ({}, 2)
        values, size = sent
        with tool.hiding(values):
            try:
                route = self._routes.get(tool) or self._prepare(tool)
                if is_too_deep(values):
                    return _failure(f"Invalid arguments for {tool.name}:\n- nested more than {DEEPEST} levels deep")
                if violations := route.input.violations(values, size=size):
                    lines = "".join(f"\n- {line}" for line in violations)
                    return _failure(f"Invalid arguments for {tool.name}:{lines}")
                if route.is_confirmed and (reason := await self._confirmation.confirm(tool, values, context)):
                    return _failure(reason)
                value = await route.method(route.model.model_validate(values), context=context)
                try:
                    return self._result(tool, route, value, count)
                except DepthError as error:
                    return self._unsendable(tool, error)
            except BaseException as error:  # a handler's SystemExit must not end the server
                if context.leaves(error):
                    raise
                if texts := _told(error):
                    return _failure("\n".join(texts))
                return self._internal(tool, error)

    def _prepare(self, tool: Tool) -> _Route:
        validator, model = output_validator(tool), tool.Output
        route = _Route(
            input=input_validator(tool),
            model=tool.Input,
            method=Method.of(self._handlers, tool.method),
            is_confirmed=bool(tool.policy.get("confirm")),
            extent=tool.policy.get("sanitize", EXTENT),
            output=None if validator is None or model is None else _Output(validator, model),
        )
        self._routes[tool] = route
        return route

    def _result(self, tool: Tool, route: _Route, value: object, count: Cleaned | None) -> dict[str, Any]:
        extent = route.extent
        reply = cast("Reply[object]", value) if isinstance(value, Reply) else Reply(value)
        if route.output is None or isinstance(reply, Unstructured):
            result: dict[str, Any] = {"content": _content(tool, reply.model, extent, count)}
        else:
            is_ours = not isinstance(reply, Tolerated)
            data = _data(tool, route.output.model, reply.model) if is_ours else reply.model
            validator = route.output.validator
            try:
                data, text = cleaned(data, count) if extent == "all" else mirrored(data)
            except DepthError:
                raise
            except (TypeError, ValueError):
                return self._broken(tool, validator.violations(data, "result"))
            if violations := validator.violations(data, "result", size=len(text)):
                if isinstance(reply, Tolerated):
                    return self._result(tool, route, reply.otherwise(text, violations), count)
                return self._broken(tool, violations)
            result = {"content": [{"type": "text", "text": text}], "structuredContent": data}
        result["content"] += [_added(tool, one, extent, count) for one in reply.content]
        if not self._may_link:
            self._note_resources(tool, {one["type"] for one in result["content"]})
        if reply.meta is not None:
            meta = dict(reply.meta)
            result["_meta"] = (cleaned(meta, count) if extent == "all" else mirrored(meta))[0]
        return result

    def _note_resources(self, tool: Tool, kinds: set[str]) -> None:
        """Tell the log of a result that leads to resources, once."""
        found = [words for kind, words in _RESOURCES.items() if kind in kinds]
        if not found:
            return
        self._may_link = True
        self._log.warning(
            "%s gave %s, but the manifest declares no resources; "
            "`server: {capabilities: {resources: true}}` says that it is meant",
            tool.method,
            " and ".join(found),
        )

    def _broken(self, tool: Tool, violations: Sequence[str]) -> dict[str, Any]:
        reference = secrets.token_hex(4)
        self._log.error(
            "%s returned what its outputSchema forbids (reference %s):\n%s",
            tool.method,
            reference,
            "\n".join(violations),
        )
        return _failure(f"The result of {tool.name} breaks its own output schema (reference {reference}).")

    def _unsendable(self, tool: Tool, error: DepthError) -> dict[str, Any]:
        reference = secrets.token_hex(4)
        self._log.error("%s returned what cannot be sent (reference %s): %s", tool.method, reference, error)
        return _failure(f"The result of {tool.name} cannot be sent: {error} (reference {reference}).")

    def _internal(self, tool: Tool, error: BaseException) -> dict[str, Any]:
        reference = secrets.token_hex(4)
        self._log.error("%s failed (reference %s)", tool.method, reference, exc_info=error)
        return _failure(f"Internal error in {tool.name} (reference {reference}).")


@dataclass(frozen=True, slots=True)
class _Output:
    validator: Validator
    model: type[Model | Root[Any]]


@dataclass(frozen=True, slots=True)
class _Route:
    """What a call of one tool needs, looked up once."""

    input: Validator
    model: type[Model]
    method: Method
    is_confirmed: bool
    extent: Extent
    output: _Output | None


def _data(tool: Tool, expected: type[Model | Root[Any]], value: object) -> Any:
    """The JSON of an output model; a value that is JSON already is taken, too, since the schema decides."""
    if isinstance(value, expected):
        return value.model_dump(mode="json")
    if is_object(value) or not (issubclass(expected, Model) or _is_model(value)):
        return value
    found, wanted = _kind(value), expected.__name__
    if type(value).__name__ == wanted:
        found, wanted = (f"{kind.__module__}.{kind.__qualname__}" for kind in (type(value), expected))
    raise TypeError(f"{tool.method} returned {found}; it should return {wanted}, the class of the tool {tool.name}")


def _is_model(value: object) -> bool:
    return isinstance(value, Model | Root)


def _content(tool: Tool, value: object, extent: Extent, count: Cleaned | None) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"type": "text", "text": said(value, extent, count)}]
    if isinstance(value, ContentBlock):
        return [block(value, extent, count)]
    if is_list(value) and all(isinstance(one, ContentBlock) for one in value):
        return [block(one, extent, count) for one in value]
    raise TypeError(f"{tool.method} returned {_kind(value)}; it should return text, a content block, or a list of them")


def _added(tool: Tool, value: object, extent: Extent, count: Cleaned | None) -> dict[str, Any]:
    if not isinstance(value, ContentBlock):
        raise TypeError(f"{tool.method} returned a Reply whose content holds {_kind(value)}; it should hold blocks")
    return block(value, extent, count)


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _failure(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": clean(text)}], "isError": True}


def _told(error: BaseException) -> list[str]:
    """What the caller is told: the texts of a `ToolError`, or of a group (of a task group) that holds nothing else."""
    if is_tool_error(error):
        return [str(error)]
    if is_group(error):
        parts = [_told(inner) for inner in error.exceptions]
        return [text for part in parts for text in part] if all(parts) else []
    return []
