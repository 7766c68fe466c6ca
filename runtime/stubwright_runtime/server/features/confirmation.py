"""Asks the user to confirm tool calls (`policy.confirm`).

Confirmation protects users from models and mistakes. It does not protect the server from clients, which can forge the
answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...values.json import Json
from ...values.sanitizing import clean
from ...values.text import BRACES, fill_placeholders
from ..core.outcomes import Outcome, refuse
from .elicitation import FORM, make_form, parse_answer
from .input_requests import OWN_PREFIX, InvalidAnswer, MissingCapability, find_rounds
from .truncation import Truncation, truncate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...package import Tool
    from ..core.request import Handle, Request

_KEY: Final = f"{OWN_PREFIX}confirm"
_FIELD: Final = "confirm"
_MISSING: Final = object()


def require_confirmation(tool: Tool, call_next: Handle) -> Handle:
    """Require the user's confirmation for calls to a tool. A task is confirmed once, before it starts."""
    confirm: Json = tool.policy.get("confirm")
    if not confirm:
        return call_next
    settings: Mapping[str, Any] = confirm if isinstance(confirm, dict) else {}

    async def call(request: Request) -> Outcome:
        reason = None if request.task_id is not None else await _confirm(tool, settings, request)
        return await call_next(request) if reason is None else refuse(reason, "denied", "not_confirmed")

    return call


async def _confirm(tool: Tool, settings: Mapping[str, Any], request: Request) -> str | None:
    """Return the reason not to run the tool, or `None` if the user confirmed the call.

    Raises:
        CallSuspension: The client sends the answer with its next request.
        MissingCapability: The client does not support elicitation (MCP 2026-07-28 and later, basic/index, "Error
            Codes").
    """
    title = tool.definition.get("title") or tool.name
    schema = _form(title)
    question = make_form(_make_message(tool, title, settings.get("message"), request.arguments), schema)
    try:
        action = await find_rounds(request).ask(_KEY, question, partial(_parse_answer, schema), FORM)
    except InvalidAnswer:
        return f"{tool.name} requires the user's confirmation. The client's answer was missing or invalid."
    except MissingCapability as error:
        if settings.get("fallback") == "allow":
            return None
        reason = f"{tool.name} requires the user's confirmation, but this client does not support elicitation by form."
        if request.revision.has("stateless"):
            raise MissingCapability(error.required, reason) from None
        return reason
    if action == "accept":
        return None
    return f"The user {'declined' if action == 'decline' else 'did not answer'}: {tool.name} did not run."


def _form(title: str) -> dict[str, Any]:
    # Some clients refuse empty forms.
    box = {"type": "boolean", "title": f"Run {clean(title)}", "description": "If unchecked, the tool does not run."}
    return {"type": "object", "properties": {_FIELD: box}, "required": [_FIELD]}


def _parse_answer(schema: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    result = parse_answer({"schema": schema}, answer)
    return "decline" if result.action == "accept" and result.content[_FIELD] is False else result.action


def _make_message(tool: Tool, title: str, template: str | None, arguments: Mapping[str, Any]) -> str:
    """Return the message to the user, from the manifest's template or the default template.

    The message shows every argument that the caller sent, or notes that an argument was omitted, even if the template
    does not mention the argument. Bound arguments appear only where the template mentions them.
    """
    properties: Mapping[str, Any] = tool.accepts.get("properties") or {}
    redacted = tool.redact(arguments)
    sent = [name for name in redacted if name not in tool.bound]
    known_first = {name: redacted[name] for name in sorted(sent, key=lambda name: name not in properties)}
    if template is None:
        return truncate(lambda truncation: f"Run {title} with {truncation.format_json(known_first)}?")
    named = {match[1] for match in BRACES.finditer(template) if match[1] is not None}
    others = {name: value for name, value in known_first.items() if name not in named}

    def fill(truncation: Truncation) -> str:
        text = fill_placeholders(
            template, lambda name: _format_words(truncation, _get_argument(properties, redacted, name), name)
        )
        return f"{text}\nAlso: {truncation.format_json(others)}" if others else text

    return truncate(fill)


def _get_argument(properties: Mapping[str, Any], arguments: Mapping[str, Any], name: str) -> Any:
    declared: Json = properties.get(name)
    default = declared.get("default", _MISSING) if isinstance(declared, dict) else _MISSING
    return arguments.get(name, default)


def _format_words(truncation: Truncation, value: Any, name: str) -> str:
    return "(none)" if value is _MISSING else truncation.format_words(value, name)
