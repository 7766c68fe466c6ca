"""One call of a tool, from its arguments to its result.

Takes the handlers object and calls; gives their outcomes, with results as they go on the wire in the newest revision.
Every failure of a handler ends as a result; only cancellation and questions propagate.
It knows no transport. Models and content blocks are loaded with the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import ToolError
from ...mcp.vocabulary import is_reserved
from ...schema.validation import Validator, get_input_validator, get_output_validator
from ...state.budget import BudgetExceeded
from ...state.store import describe_lost_state, find_state_lost
from ...values.json import is_group, is_list, is_object
from ...values.modules import find_loaded
from ...values.nesting import DEEPEST, DepthError, is_too_deep
from ...values.sanitizing import DEFAULT_EXTENT, Cleaned, Extent, sanitize_text
from ..declared import keep_misfits, takes_misfits
from ..execution.invocation import Method
from ..execution.threads import NoFreeThreadError
from ..handlers.returns import Reply, Tolerated, Unstructured
from .call_state import CURRENT, make_reference
from .outcomes import Outcome, refuse
from .sanitizing import encode_json, sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...models.base import Model, Root
    from ...package import Tool
    from ..features.handles import HandleRegistry
    from ..features.paging import Cursors, Paging
    from .context import Context
    from .parts import Host
    from .steps import Call


_MISFIT: Final = "a result that does not fit its outputSchema"
_RESOURCES: Final = {"resource_link": "a resource link", "resource": "an embedded resource"}


class Dispatcher:
    """The handlers, ready to be called."""

    def __init__(self, host: Host) -> None:
        """Take the host of the server's parts.

        Without resources, the first link to one and the first embedded one are logged: the client may not be able to
        follow them (MCP 2025-11-25, server/tools, "Embedded Resources").
        """
        self._handlers = host.handlers
        self._log = host.log
        self._failures = host.failures
        self._routes: dict[Tool, _Route] = {}
        self._may_link = "resources" in host.lists.by_name
        self._handles = _handle_registry(host)
        self._cursors = _cursors(host)

    async def call(self, call: Call) -> Outcome:
        """Run a call.

        Raises:
            MissingCapability: The handler asks a question that the client cannot answer.
            Suspended: The handler waits for an answer.
        """
        tool, values, context = call.tool, call.arguments, call.context
        bound: Any = None
        page: Any = None
        has_begun = False
        with tool.hide(values):
            try:
                route = self._routes.get(tool) or self._prepare(tool)
                if is_too_deep(values, size=call.size):
                    return _refuse_arguments(tool, [f"nested more than {DEEPEST} levels deep"])
                if call.clashes:
                    return _refuse_arguments(tool, call.clashes)
                violations = route.input.find_errors(values, size=call.size)
                if violations and not route.takes_misfits:
                    return _refuse_arguments(tool, violations)
                if (call_state := CURRENT.get()) is not None:
                    call_state.is_valid = True
                if self._cursors is not None and tool.is_paginated:
                    page = await self._cursors.open(tool, values, context.principal)
                    if isinstance(page, Outcome):
                        return page
                    values, context = page.arguments, replace(context, _page=page.request)
                if self._handles is not None:
                    bound = await self._handles.bind(tool, values, context.principal)
                    if isinstance(bound, Outcome):
                        return bound
                    context = replace(context, _handles=bound)
                is_asked = route.is_confirmed and not call.is_run  # the call that began the task was confirmed
                if is_asked and (reason := await _refuse_unconfirmed(tool, values, context)):
                    return refuse(reason, "denied", "not_confirmed")
                # Only here, so that invalid, unknown or unconfirmed calls begin no task.
                if call.begin is not None:
                    return await call.begin(call)
                has_begun = True
                arguments = (
                    self._misfits(tool, values, violations) if violations else route.model.model_validate(values)
                )
                value = await route.method(arguments, context=context)
                try:
                    outcome = self._result(tool, route, value, page)
                except DepthError as error:
                    return self._refuse_depth(tool, error)
                if bound is None:
                    return outcome
                wrong: list[str] = await bound.registry.find_broken(tool, outcome, bound)
                return self._refuse_result(tool, wrong) if wrong else outcome
            except BaseException as error:  # a handler's SystemExit must not end the server
                if context.leaves(error):
                    raise
                if isinstance(error, BudgetExceeded):
                    return refuse(str(error), "limited", "storage")
                if isinstance(error, NoFreeThreadError):
                    return refuse(f"{tool.name} was not run. {error}", "limited", "threads")
                if texts := _error_texts(error):
                    return refuse("\n".join(texts), "tool_error", "tool_error")
                if (loss := find_state_lost(error)) is not None:
                    text = describe_lost_state(is_unknown=loss.is_unknown or has_begun)
                    return refuse(text, "limited", "state_lost")
                return self._refuse_failure(tool, error)

    def _misfits(self, tool: Tool, values: Mapping[str, Any], violations: list[str]) -> object:
        """Arguments that are sent although the schema refuses them."""
        self._log.warning("%s is called with arguments that do not fit: %s", tool.name, "; ".join(violations))
        return keep_misfits(values)

    def _prepare(self, tool: Tool) -> _Route:
        validator, model = get_output_validator(tool), tool.Output
        route = _Route(
            input=get_input_validator(tool),
            model=tool.Input,
            method=Method.find(self._handlers, tool.method, "tool"),
            takes_misfits=takes_misfits(self._handlers, tool),
            is_confirmed=bool(tool.policy.get("confirm")),
            extent=tool.policy.get("sanitize", DEFAULT_EXTENT),
            output=None if validator is None or model is None else _Output(validator, model),
        )
        self._routes[tool] = route
        return route

    def _result(self, tool: Tool, route: _Route, value: object, page: Paging | None = None) -> Outcome:
        extent, count = route.extent, Cleaned()
        reply = cast("Reply[object]", value) if isinstance(value, Reply) else Reply(value)
        if route.output is not None and reply.structured is not None:
            raise TypeError(
                f"{tool.method} returned a Reply with `structured`, but the tool {tool.name} has an outputSchema: "
                "its structured content is the model"
            )
        if route.output is None or isinstance(reply, Unstructured):
            result: dict[str, Any] = {"content": _content(tool, reply.model, extent, count)}
            if reply.structured is not None:
                result["structuredContent"] = _structured(reply.structured, extent, count)
        else:
            is_ours = not isinstance(reply, Tolerated)
            data = _dump(tool, route.output.model, reply.model) if is_ours else reply.model
            data = data if page is None else page.seal(data)
            validator = route.output.validator
            try:
                # Before the validation: what is too short once it is clean breaks the schema.
                data, text = sanitize(data, count) if extent == "all" else encode_json(data)
            except DepthError:
                raise
            except (TypeError, ValueError):
                return self._refuse_result(tool, validator.find_errors(data, "result"))
            if violations := validator.find_errors(data, "result", size=len(text)):
                if isinstance(reply, Tolerated):
                    return self._result(tool, route, reply.otherwise(text, violations))
                return self._refuse_result(tool, violations)
            result = {"content": [{"type": "text", "text": text}], "structuredContent": data}
        result["content"] += [_to_block(tool, item, extent, count) for item in reply.content]
        if not self._may_link:
            self._warn_of_links(tool, {item["type"] for item in result["content"]})
        if reply.meta is not None:
            meta = self._own(tool, reply.meta)
            result["_meta"] = (sanitize(meta, count) if extent == "all" else encode_json(meta))[0]
        return Outcome(result, cleaned=count)

    def _own(self, tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the `_meta` of a result without keys that are MCP's (MCP 2025-11-25, basic, "_meta")."""
        meta = {key: value for key, value in given.items() if not is_reserved(key)}
        if len(meta) < len(given):
            reserved = ", ".join(map(repr, given.keys() - meta.keys()))
            self._log.warning(
                "%s returned a Reply whose `meta` has keys that only MCP defines: %s", tool.method, reserved
            )
        return meta

    def _warn_of_links(self, tool: Tool, kinds: set[str]) -> None:
        """Tell the log of a result that leads to resources, once."""
        links = [words for kind, words in _RESOURCES.items() if kind in kinds]
        if not links:
            return
        self._may_link = True
        self._log.warning(
            "%s returned %s, but the manifest declares no resources; "
            "if that is intended, add `server: {capabilities: {resources: true}}`",
            tool.method,
            " and ".join(links),
        )

    def _refuse_result(self, tool: Tool, violations: Sequence[str]) -> Outcome:
        reference_id, lines = make_reference(), "\n".join(violations)
        self._failures.note(reference_id, TypeError(f"{tool.method} returned {_MISFIT}:\n{lines}"))
        self._log.error("%s returned %s (reference %s):\n%s", tool.method, _MISFIT, reference_id, lines)
        text = f"The result of {tool.name} does not fit its output schema (reference {reference_id})."
        return refuse(text, "failed", "output_schema", reference_id)

    def _refuse_depth(self, tool: Tool, error: DepthError) -> Outcome:
        reference_id = make_reference()
        self._failures.note(reference_id, error)
        self._log.error("%s returned a result that cannot be sent (reference %s): %s", tool.method, reference_id, error)
        text = f"The result of {tool.name} cannot be sent: {error} (reference {reference_id})."
        return refuse(text, "failed", "result_depth", reference_id)

    def _refuse_failure(self, tool: Tool, error: BaseException) -> Outcome:
        reference_id = make_reference()
        self._failures.note(reference_id, error)
        self._log.error("%s failed (reference %s)", tool.method, reference_id, exc_info=error)
        text = f"Internal error in {tool.name} (reference {reference_id})."
        return refuse(text, "failed", "internal_error", reference_id)


@dataclass(frozen=True, slots=True)
class _Output:
    validator: Validator
    model: type[Model | Root[Any]]


@dataclass(frozen=True, slots=True)
class _Route:
    """The validators, model and method for calls of one tool, looked up once."""

    input: Validator
    model: type[Model]
    method: Method
    takes_misfits: bool
    is_confirmed: bool
    extent: Extent
    output: _Output | None


def _handle_registry(host: Host) -> HandleRegistry | None:
    if not host.package.has_handles:
        return None
    from ..features.handles import HandleRegistry

    return HandleRegistry(host)


def _cursors(host: Host) -> Cursors | None:
    if not any(tool.is_paginated for tool in host.package.tools.values()):
        return None
    from ..features.paging import Cursors

    return Cursors(host)


async def _refuse_unconfirmed(tool: Tool, values: Mapping[str, Any], context: Context) -> str | None:
    """Return the reason that a call without its confirmation must not run; `None` if it may."""
    from ..features.confirmation import confirm

    return await confirm(tool, values, context)


def _dump(tool: Tool, expected: type[Model | Root[Any]], value: object) -> Any:
    """Return the JSON of an output model; a value that is JSON already is accepted, too, since the schema decides."""
    if isinstance(value, expected):
        return value.model_dump(mode="json", warnings=False)  # the schema says what is wrong, without the value
    if is_object(value) or not (_is_model(value) or _has_fields(expected)):
        return value
    actual, expected_name = _kind(value), expected.__name__
    if type(value).__name__ == expected_name:
        actual, expected_name = (f"{kind.__module__}.{kind.__qualname__}" for kind in (type(value), expected))
    raise TypeError(
        f"{tool.method} returned {actual}; it should return {expected_name}, the class of the tool {tool.name}"
    )


def _structured(value: Any, extent: Extent, count: Cleaned) -> Any:
    """Return structured content without a schema as JSON."""
    data = value.model_dump(mode="json") if _is_model(value) else value
    return (sanitize(data, count) if extent == "all" else encode_json(data))[0]


def _is_model(value: object) -> bool:
    """Tell whether a value is a model. If models are not loaded, none exists."""
    base = find_loaded("stubwright_runtime.models.base")
    return base is not None and isinstance(value, (base.Model, base.Root))


def _has_fields(expected: type[Model | Root[Any]]) -> bool:
    from ...models.base import Model

    return issubclass(expected, Model)


def _is_block(value: object) -> bool:
    """Tell whether a value is a content block. If the SDK's types are not loaded, none exists."""
    types = find_loaded("mcp_types")
    return types is not None and isinstance(value, types.ContentBlock)


def _is_content(value: object) -> bool:
    return isinstance(value, str) or _is_block(value)


def _content(tool: Tool, value: object, extent: Extent, count: Cleaned | None) -> list[dict[str, Any]]:
    items = value if is_list(value) else [value]
    if not all(map(_is_content, items)):
        what = next((f"a list with {_kind(item)}" for item in items if not _is_content(item)), "")
        raise TypeError(
            f"{tool.method} returned {what if is_list(value) else _kind(value)}; "
            "it should return text, a content block, or a list of them"
        )
    return [_to_wire(item, extent, count) for item in items]


def _to_block(tool: Tool, value: object, extent: Extent, count: Cleaned | None) -> dict[str, Any]:
    if not _is_content(value):
        raise TypeError(
            f"{tool.method} returned a Reply whose content holds {_kind(value)}; it should hold text and content blocks"
        )
    return _to_wire(value, extent, count)


def _to_wire(value: Any, extent: Extent, count: Cleaned | None) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": "text", "text": sanitize_text(value, extent, count)}
    from .content_blocks import encode_block

    return encode_block(value, extent, count)


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _refuse_arguments(tool: Tool, violations: Sequence[str]) -> Outcome:
    lines = "".join(f"\n- {line}" for line in violations)
    return refuse(f"Invalid arguments for {tool.name}:{lines}", "invalid", "input_schema")


def _error_texts(error: BaseException) -> list[str]:
    """Return the error texts for the caller: those of a `ToolError`, or of an exception group that holds only these."""
    if isinstance(error, ToolError):
        return [str(error)]
    if is_group(error):
        parts = [_error_texts(inner) for inner in error.exceptions]
        return [text for part in parts for text in part] if all(parts) else []
    return []
