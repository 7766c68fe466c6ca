"""Encodes the values that tool handlers return, and the outcomes of calls that fail.

Results have the format of the newest MCP revision. Models and content blocks are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...mcp.vocabulary import is_reserved
from ...schema.validation import get_output_validator
from ...values.json import is_list, is_object
from ...values.modules import find_loaded
from ...values.nesting import DepthError
from ...values.sanitizing import DEFAULT_SANITIZE_MODE, SanitizeMode, SanitizeStats, sanitize_text
from ..core.call_state import make_reference
from ..core.outcomes import Outcome, refuse
from ..core.sanitizing import sanitize
from ..handlers.returns import Reply, UnstructuredReply, UpstreamReply
from ..protocol.messages import encode_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...models.base import Model, Root
    from ...package import Tool
    from ..core.feature import ServerContext

_INVALID_RESULT: Final = "a result that does not match its outputSchema"
_RESOURCES: Final = {"resource_link": "a resource link", "resource": "an embedded resource"}


class Results:
    """Outcomes of one server's tool calls, with their log lines."""

    def __init__(self, server: ServerContext) -> None:
        """Create an encoder's shared state for a server.

        If the server declares no resources, its first resource link or embedded resource is logged, because clients
        might not support resources (MCP 2025-11-25, server/tools, "Embedded Resources").
        """
        self._log = server.log
        self._failures = server.failures
        self._may_link = "resources" in server.lists.by_name

    def select_meta(self, tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a `Reply`'s `meta` without the keys that MCP reserves (MCP 2025-11-25, basic, "_meta")."""
        meta = {key: value for key, value in given.items() if not is_reserved(key)}
        if len(meta) < len(given):
            reserved = ", ".join(map(repr, given.keys() - meta.keys()))
            self._log.warning(
                "removed keys that MCP reserves from the `meta` of a Reply from %s: %s", tool.method, reserved
            )
        return meta

    def log_links(self, tool: Tool, kinds: set[str]) -> None:
        """Log the server's first result that refers to resources, if the manifest declares none."""
        if self._may_link:
            return
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

    def refuse_invalid_result(self, tool: Tool, errors: Sequence[str]) -> Outcome:
        """Log a result's schema errors and return the outcome of the call."""
        reference_id, lines = make_reference(), "\n".join(errors)
        self._failures.add(reference_id, TypeError(f"{tool.method} returned {_INVALID_RESULT}:\n{lines}"))
        self._log.error("%s returned %s (reference %s):\n%s", tool.method, _INVALID_RESULT, reference_id, lines)
        text = f"The result of {tool.name} does not match its output schema (reference {reference_id})."
        return refuse(text, "failed", "output_schema", reference_id)

    def refuse_depth(self, tool: Tool, error: DepthError) -> Outcome:
        """Log that a result is nested too deeply and return the outcome of the call."""
        reference_id = make_reference()
        self._failures.add(reference_id, error)
        self._log.error("%s returned a result that cannot be sent (reference %s): %s", tool.method, reference_id, error)
        text = f"The result of {tool.name} cannot be sent: {error} (reference {reference_id})."
        return refuse(text, "failed", "result_depth", reference_id)

    def refuse_failure(self, tool: Tool, error: BaseException) -> Outcome:
        """Log a handler's exception and return the outcome of the call."""
        reference_id = make_reference()
        self._failures.add(reference_id, error)
        self._log.error("%s failed (reference %s)", tool.method, reference_id, exc_info=error)
        text = f"Internal error in {tool.name} (reference {reference_id})."
        return refuse(text, "failed", "internal_error", reference_id)


class Encoder:
    """Encodes the values that one tool's handler returns."""

    def __init__(self, results: Results, tool: Tool) -> None:
        self._results = results
        self._tool = tool
        self._validator, self._model = get_output_validator(tool), tool.Output
        self._sanitize_mode: SanitizeMode = tool.policy.get("sanitize", DEFAULT_SANITIZE_MODE)

    def encode(self, value: object, page: Any = None) -> Outcome:
        """Return the outcome of a call whose handler returned `value`.

        Args:
            value: A `Reply`, an output model, JSON, or content blocks.
            page: The requested page (`features.paging.PageCall`); `None` if the tool is not paginated.

        Raises:
            DepthError: The result is nested too deeply.
            TypeError: The value has the wrong type or is not JSON.
            ValueError: The value contains a number that is not JSON, or an invalid base64, URI or MIME type.
        """
        if isinstance(value, Reply):
            return self._encode_reply(value, page)
        if self._validator is None or self._model is None:
            count = SanitizeStats()
            content = _content(self._tool, value, self._sanitize_mode, count)
            self._results.log_links(self._tool, {block["type"] for block in content})
            return Outcome({"content": content}, cleaned=count.strings)
        return self._encode_output(_dump(self._tool, self._model, value), page)

    def _encode_output(self, data: Any, page: Any, reply: UpstreamReply | None = None) -> Outcome:
        count, validator = None, self._validator
        if validator is None:
            raise RuntimeError("cannot encode structured content: the tool has no outputSchema")
        if page is not None:
            data = page.seal(data)
        try:
            # Before validation, because sanitizing can shorten strings.
            if self._sanitize_mode == "all":
                data, text = sanitize(data, count := SanitizeStats())
            else:
                data, text = encode_json(data)
        except DepthError:
            raise
        except (TypeError, ValueError):
            return self._results.refuse_invalid_result(self._tool, validator.find_errors(data, "result"))
        if errors := validator.find_errors(data, "result", size=len(text)):
            if reply is not None:
                return self._encode_reply(reply.otherwise(text, errors), page)
            return self._results.refuse_invalid_result(self._tool, errors)
        result = {"content": [{"type": "text", "text": text}], "structuredContent": data}
        return Outcome(result, cleaned=0 if count is None else count.strings)

    def _encode_reply(self, reply: Reply[Any], page: Any) -> Outcome:
        tool, sanitize_mode, count = self._tool, self._sanitize_mode, SanitizeStats()
        if self._validator is not None and self._model is not None and reply.structured is not None:
            raise TypeError(
                f"{tool.method} returned a Reply with `structured`, but the tool {tool.name} has an outputSchema, "
                "so the structured content must come from the model"
            )
        if self._validator is None or self._model is None or isinstance(reply, UnstructuredReply):
            result: dict[str, Any] = {"content": _content(tool, reply.model, sanitize_mode, count)}
            if reply.structured is not None:
                result["structuredContent"] = _structured(reply.structured, sanitize_mode, count)
        else:
            tolerated = reply if isinstance(reply, UpstreamReply) else None
            data = _dump(tool, self._model, reply.model) if tolerated is None else reply.model
            outcome = self._encode_output(data, page, tolerated)
            if outcome.status != "completed" or "structuredContent" not in outcome.result:
                return outcome
            result, count.strings = outcome.result, outcome.cleaned
        result["content"] += [_to_block(tool, block, sanitize_mode, count) for block in reply.content]
        self._results.log_links(tool, {block["type"] for block in result["content"]})
        if reply.meta is not None:
            meta = self._results.select_meta(tool, reply.meta)
            result["_meta"] = (sanitize(meta, count) if sanitize_mode == "all" else encode_json(meta))[0]
        return Outcome(result, cleaned=count.strings)


def _dump(tool: Tool, expected: type[Model | Root[Any]], value: object) -> Any:
    """Return an output model as JSON. Return a JSON value unchanged, because its schema is checked later."""
    if isinstance(value, expected):
        return value.model_dump(mode="json", warnings=False)  # the validator reports errors, without the value
    if is_object(value) or not (_is_model(value) or _has_fields(expected)):
        return value
    actual, expected_name = _kind(value), expected.__name__
    if type(value).__name__ == expected_name:
        actual, expected_name = (f"{kind.__module__}.{kind.__qualname__}" for kind in (type(value), expected))
    raise TypeError(
        f"{tool.method} returned {actual}; expected {expected_name}, the output class of the tool {tool.name}"
    )


def _structured(value: Any, sanitize_mode: SanitizeMode, count: SanitizeStats) -> Any:
    data = value.model_dump(mode="json") if _is_model(value) else value
    return (sanitize(data, count) if sanitize_mode == "all" else encode_json(data))[0]


def _is_model(value: object) -> bool:
    """Return whether a value is a model, without importing the models."""
    base = find_loaded("stubwright_runtime.models.base")
    return base is not None and isinstance(value, (base.Model, base.Root))


def _has_fields(expected: type[Model | Root[Any]]) -> bool:
    from ...models.base import Model

    return issubclass(expected, Model)


def _is_block(value: object) -> bool:
    """Return whether a value is a content block, without importing the SDK's types."""
    types = find_loaded("mcp_types")
    return types is not None and isinstance(value, types.ContentBlock)


def _is_content(value: object) -> bool:
    return isinstance(value, str) or _is_block(value)


def _content(
    tool: Tool, value: object, sanitize_mode: SanitizeMode, count: SanitizeStats | None
) -> list[dict[str, Any]]:
    items = value if is_list(value) else [value]
    if not all(map(_is_content, items)):
        what = next((f"a list with {_kind(item)}" for item in items if not _is_content(item)), "")
        raise TypeError(
            f"{tool.method} returned {what if is_list(value) else _kind(value)}; "
            "expected a string, a content block, or a list of strings and content blocks"
        )
    return [_to_wire(item, sanitize_mode, count) for item in items]


def _to_block(tool: Tool, value: object, sanitize_mode: SanitizeMode, count: SanitizeStats | None) -> dict[str, Any]:
    if not _is_content(value):
        raise TypeError(
            f"{tool.method} returned a Reply whose content contains {_kind(value)}; "
            "expected only strings and content blocks"
        )
    return _to_wire(value, sanitize_mode, count)


def _to_wire(value: Any, sanitize_mode: SanitizeMode, count: SanitizeStats | None) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": "text", "text": sanitize_text(value, sanitize_mode, count)}
    from ..core.content_blocks import encode_block

    return encode_block(value, sanitize_mode, count)


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
