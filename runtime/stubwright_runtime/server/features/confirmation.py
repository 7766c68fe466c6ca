"""The confirmation of a call by the user, which the server asks for if the manifest says `policy.confirm`.

It protects users from models and mistakes, not the server from its clients: a client can forge the answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...schema.validation import Validator
from ...values.json import Json
from ...values.sanitizing import clean
from ...values.text import BRACES, fill_placeholders
from ..core.outcomes import Outcome, refuse
from .elicitation import FORM, make_form
from .input_requests import OURS, InvalidAnswer, MissingCapability, find_rounds, read_elicit_result
from .truncation import Truncation, truncate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...package import Tool
    from ..core.request import Handle, Request

_KEY: Final = f"{OURS}confirm"
_FIELD: Final = "confirm"
_MISSING: Final = object()


def require_confirmation(tool: Tool, call_next: Handle) -> Handle:
    """Have the user confirm the calls of a tool; the runs of tasks were confirmed when they were called."""
    confirm: Json = tool.policy.get("confirm")
    if not confirm:
        return call_next
    settings: Mapping[str, Any] = confirm if isinstance(confirm, dict) else {}

    async def call(request: Request) -> Outcome:
        reason = None if request.task_id is not None else await _confirm(tool, settings, request)
        return await call_next(request) if reason is None else refuse(reason, "denied", "not_confirmed")

    return call


async def _confirm(tool: Tool, settings: Mapping[str, Any], request: Request) -> str | None:
    """Return the reason that a tool must not run; `None` if it may.

    Raises:
        CallSuspension: The answer comes with the next request.
        MissingCapability: The client cannot ask, from 2026-07-28 on (basic/index, "Error Codes").
    """
    title = tool.definition.get("title") or tool.name
    schema = _form(title)
    question = make_form(_message(tool, title, settings.get("message"), tool.redact(request.arguments)), schema)
    try:
        action = await find_rounds(request).ask(_KEY, question, partial(_read, schema), FORM)
    except InvalidAnswer:
        return f"{tool.name} needs the user's confirmation, and the client could not ask for it."
    except MissingCapability as error:
        if settings.get("fallback") == "allow":
            return None
        reason = f"{tool.name} needs the user's confirmation, and this client cannot ask for it (elicitation)."
        if request.revision.has("stateless"):
            raise MissingCapability(error.required, reason) from None
        return reason
    if action == "accept":
        return None
    return f"The user {'declined' if action == 'decline' else 'did not answer'}: {tool.name} did not run."


def _form(title: str) -> dict[str, Any]:
    """Return one box to tick: clients refuse forms that ask for nothing."""
    box = {"type": "boolean", "title": f"Run {clean(title)}", "description": "If unchecked, the tool does not run."}
    return {"type": "object", "properties": {_FIELD: box}, "required": [_FIELD]}


def _read(schema: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Return the user's decision; a form that is sent without a tick is a no."""
    result = read_elicit_result(answer)
    if result.action != "accept":
        return result.action
    if violations := Validator(schema).find_errors(result.content, "answer"):
        raise InvalidAnswer("; ".join(violations))
    return "accept" if result.content[_FIELD] is True else "decline"


def _message(tool: Tool, title: str, template: str | None, arguments: Mapping[str, Any]) -> str:
    """Return the question to the user: the manifest's words with the arguments, otherwise the tool and its arguments.

    Every argument is shown, or said to be omitted, even if the manifest's words do not name it.
    """
    properties: Mapping[str, Any] = tool.accepts.get("properties") or {}
    known_first = dict(sorted(arguments.items(), key=lambda item: item[0] not in properties))
    if template is None:
        return truncate(lambda truncation: f"Run {title} with {truncation.format_json(known_first)}?")
    named = {match[1] for match in BRACES.finditer(template) if match[1] is not None}
    others = {name: value for name, value in known_first.items() if name not in named}

    def fill(truncation: Truncation) -> str:
        text = fill_placeholders(
            template, lambda name: _words(truncation, _argument(properties, arguments, name), name)
        )
        return f"{text}\nAlso: {truncation.format_json(others)}" if others else text

    return truncate(fill)


def _argument(properties: Mapping[str, Any], arguments: Mapping[str, Any], name: str) -> Any:
    """Return an argument; if it was not sent, its default."""
    declared: Json = properties.get(name)
    default = declared.get("default", _MISSING) if isinstance(declared, dict) else _MISSING
    return arguments.get(name, default)


def _words(truncation: Truncation, value: Any, name: str) -> str:
    return "(none)" if value is _MISSING else truncation.format_words(value, name)
