"""The confirmation of a call by the user, which the server asks for if the manifest says `policy.confirm`.

Takes a tool, its arguments and the context of the call; gives the reason that the tool must not run. It protects users
from models and mistakes, not the server from its clients: a client can forge the answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...mcp.revisions import Revision
from ...schema.validation import Validator
from ...values.json import Json
from ...values.sanitizing import clean
from ...values.text import BRACES, fill_placeholders
from .elicitation import FORM, make_form
from .input_requests import OURS, InvalidAnswer, MissingCapability, read_elicit_result
from .truncation import Truncation, truncate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...package import Tool
    from ..core.context import Context

_KEY: Final = f"{OURS}confirm"
_FIELD: Final = "confirm"
_MISSING: Final = object()


async def confirm(tool: Tool, arguments: Mapping[str, Any], context: Context) -> str | None:
    """Return the reason that a tool must not run; `None` if it may.

    Raises:
        Suspended: The answer comes with the next request.
        MissingCapability: The client cannot ask, from 2026-07-28 on (basic/index, "Error Codes").
    """
    confirm: Json = tool.policy.get("confirm")
    if not confirm:
        return None
    settings: Mapping[str, Any] = confirm if isinstance(confirm, dict) else {}
    title = tool.definition.get("title") or tool.name
    schema = _form(title)
    question = make_form(_message(tool, title, settings.get("message"), tool.redact(arguments)), schema)
    try:
        action = await context.rounds.ask(_KEY, question, partial(_read, schema), FORM)
    except InvalidAnswer:
        return f"{tool.name} needs the user's confirmation, and the client could not ask for it."
    except MissingCapability as error:
        if settings.get("fallback") == "allow":
            return None
        reason = f"{tool.name} needs the user's confirmation, and this client cannot ask for it (elicitation)."
        if Revision.from_date(context.revision).has("stateless"):
            raise MissingCapability(error.required, reason) from None
        return reason
    if action == "accept":
        return None
    return f"The user {'declined' if action == 'decline' else 'did not answer'}: {tool.name} did not run."


def _form(title: str) -> dict[str, Any]:
    """Return one box to tick: clients refuse forms that ask for nothing."""
    box = {"type": "boolean", "title": f"Run {clean(title)}", "description": "Without this, nothing happens."}
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

    Every argument is shown, or said to be left out, even if the manifest's words do not name it.
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
