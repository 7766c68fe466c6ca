"""The confirmation of a call by the user, which the server asks for where the manifest says `policy.confirm`.

Takes a tool, its arguments and the context of the call; says why the tool must not run. It protects users from models
and mistakes, not the server from its clients: a client can forge the answer.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_types import ElicitResult

from ..alternatives import AlternativesValidator
from ..texts import filled
from ..values import Json
from .client_requests import OURS, InvalidAnswer, MissingCapability
from .elicitation import FORM, form
from .sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..package import Tool
    from .client_requests import Context

_KEY: Final = f"{OURS}confirm"
_FIELD: Final = "confirm"
_WIDTH: Final = 80
"""Characters of one value; longer texts are cut, and of longer lists and objects the size is told."""

_SHOWN: Final = 12
"""So many arguments are shown where the manifest has no message."""

_MISSING: Final = object()


async def confirm(tool: Tool, arguments: Mapping[str, Any], context: Context) -> str | None:
    """Why a tool must not run; `None` where it may.

    Raises:
        Suspended: The answer comes with the next request.
    """
    confirm: Json = tool.policy.get("confirm")
    if not confirm:
        return None
    settings: Mapping[str, Any] = confirm if isinstance(confirm, dict) else {}
    title = tool.definition.get("title") or tool.name
    schema = _form(title)
    question = form(_message(tool, title, settings.get("message"), tool.shown(arguments)), schema)
    try:
        action = await context.rounds.ask(_KEY, question, ElicitResult, partial(_read, schema), FORM)
    except InvalidAnswer:
        return f"{tool.name} needs the user's leave, and the client could not ask for it."
    except MissingCapability:
        if settings.get("fallback") == "allow":
            return None
        return f"{tool.name} needs the user's leave, and this client cannot ask for it (elicitation)."
    if action == "accept":
        return None
    return f"The user {'declined' if action == 'decline' else 'did not answer'}: {tool.name} did not run."


def _form(title: str) -> dict[str, Any]:
    """One box to tick: clients refuse forms that ask for nothing."""
    box = {"type": "boolean", "title": f"Run {clean(title)}", "description": "Without this, nothing happens."}
    return {"type": "object", "properties": {_FIELD: box}, "required": [_FIELD]}


def _read(schema: Mapping[str, Any], result: ElicitResult) -> str:
    """The user's decision; a form that is sent without a tick is a no."""
    if result.action != "accept":
        return result.action
    content = result.content or {}
    if violations := AlternativesValidator(schema).violations(content, "answer"):
        raise InvalidAnswer("; ".join(violations))
    return "accept" if content[_FIELD] is True else "decline"


def _message(tool: Tool, title: str, template: str | None, arguments: Mapping[str, Any]) -> str:
    """What the user is asked: the manifest's words with the arguments in them, else the tool and its arguments."""
    if template is not None:
        return filled(template, lambda name: _words(_argument(tool, arguments, name)))
    shown = [f"{json.dumps(name, ensure_ascii=False)}: {_json(value)}" for name, value in arguments.items()]
    more = [f"… {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return f"Run {title} with {{{', '.join([*shown[:_SHOWN], *more])}}}?"


def _argument(tool: Tool, arguments: Mapping[str, Any], name: str) -> Any:
    """An argument; where it was not sent, its default."""
    properties: Mapping[str, Any] = tool.accepts.get("properties") or {}
    declared: Json = properties.get(name)
    default = declared.get("default", _MISSING) if isinstance(declared, dict) else _MISSING
    return arguments.get(name, default)


def _words(value: Any) -> str:
    """A value inside of a sentence."""
    if value is _MISSING:
        return "(none)"
    if isinstance(value, str):
        text, rest = _cut(value)
        return f"{text}{rest}"
    return _json(value)


def _json(value: Json) -> str:
    """A value as JSON, in one line and in short."""
    if isinstance(value, str):
        text, rest = _cut(value)
        return f"{json.dumps(text, ensure_ascii=False)}{rest}"
    shown = json.dumps(value, ensure_ascii=False)
    if len(shown) <= _WIDTH:
        return clean(shown)
    if isinstance(value, dict | list):
        number = len(value)
        noun = "item" if isinstance(value, list) else "key"
        braces = "[]" if isinstance(value, list) else "{}"
        return f"{braces[0]}{number} {noun}{'' if number == 1 else 's'}{braces[1]}"
    return f"{shown[:_WIDTH]}… ({len(shown):,} characters)"


def _cut(text: str) -> tuple[str, str]:
    """The start of a text in one line, and what says how long the whole is, where it is longer."""
    start = " ".join(clean(text[: 2 * _WIDTH]).split())
    if len(text) <= 2 * _WIDTH and len(start) <= _WIDTH:
        return start, ""
    return start[:_WIDTH], f"… ({len(text):,} characters)"
