"""The confirmation of a call by the user, which the server asks for where the manifest says `policy.confirm`.

Takes a tool, its arguments and the context of the call; says why the tool must not run. It protects users from models
and mistakes, not the server from its clients: a client can forge the answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_types import ElicitResult

from .client_requests import OURS, InvalidAnswer, MissingCapability
from .elicitation import FORM, form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..package import Tool
    from .client_requests import Context

_KEY: Final = f"{OURS}confirm"
_NO_FIELDS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
_WIDTH: Final = 1000


async def confirm(tool: Tool, arguments: Mapping[str, Any], context: Context) -> str | None:
    """Why a tool must not run; `None` where it may.

    Raises:
        Suspended: The answer comes with the next request.
    """
    confirm = tool.policy.get("confirm")
    if not confirm:
        return None
    name = tool.definition.get("title") or tool.name
    shown = json.dumps(tool.shown(arguments), ensure_ascii=False)
    question = form(f"Run {name} with {shown if len(shown) <= _WIDTH else shown[:_WIDTH] + '…'}?", _NO_FIELDS)
    try:
        action = await context.rounds.ask(_KEY, question, ElicitResult, lambda result: result.action, FORM)
    except InvalidAnswer:
        return f"{tool.name} needs the user's leave, and the client could not ask for it."
    except MissingCapability:
        if isinstance(confirm, dict) and confirm.get("fallback") == "allow":
            return None
        return f"{tool.name} needs the user's leave, and this client cannot ask for it (elicitation)."
    if action == "accept":
        return None
    return f"The user {'declined' if action == 'decline' else 'did not answer'}: {tool.name} did not run."
