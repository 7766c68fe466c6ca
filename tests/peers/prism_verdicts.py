"""Assigns the cause of each rejection by Prism: a rule for each known cause, and ours for all others.

- *ours*: the request violates the document. There must be none.
- *Prism's*: the request conforms to the document and the specification, and Prism misreads it.
- *the document's*: the request passed, and the document's own example violates its own response schema.
- *the value's*: the made-up argument is valid under its schema, and no request can carry it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl

from prism import CRASHED, Judged, Refusal, Violation
from prism_calls import Call

Verdict: TypeAlias = Literal["accepted", "ours", "Prism's", "the document's", "the value's"]

_WANTS_LIST = re.compile(r"must be array,null$")


def verdict(call: Call, judged: Judged | None, result: str | None) -> tuple[Verdict, str]:
    """Whose fault it is, and why.

    Args:
        call: The call.
        judged: What became of its request; nothing where the server sent none.
        result: The text of the result, where that is an error.
    """
    if judged is None:
        return _unsent(result or "")
    if judged.refusal is None:
        if result is not None and judged.status < 300:
            return "ours", f"answered with {judged.status}, and yet: {result[:300]}"
        return "accepted", ""
    return _refused(call, judged, judged.refusal)


def _unsent(said: str) -> tuple[Verdict, str]:
    if "is part of the URL and cannot" in said:
        return "the value's", "an empty text or an empty object in a path"
    return "ours", f"nothing was sent: {said[:300]}"


def _refused(call: Call, judged: Judged, refusal: Refusal) -> tuple[Verdict, str]:
    if refusal.code == CRASHED:
        return "Prism's", "ends with a TypeError at an array in a path"
    if refusal.code == "VIOLATIONS" and all(each.is_of_answer for each in refusal.violations):
        return "the document's", "its own example does not fit its own response"
    if refusal.code == "UNPROCESSABLE_ENTITY" and refusal.violations:
        found = [_violated(call, judged, each) for each in refusal.violations]
        known = [each for each in found if each is not None]
        if len(known) == len(found):
            return known[0]
    return "ours", _said(refusal)


def _violated(call: Call, judged: Judged, violation: Violation) -> tuple[Verdict, str] | None:
    return next(((whose, why) for rule, whose, why in _RULES if rule(call, judged, violation)), None)


def _one_of_a_nullable_list(call: Call, judged: Judged, violation: Violation) -> bool:
    """`?a=x` for `a: ["x"]`, as OpenAPI has it for `style: form` and `explode: true`."""
    wanted = violation.place.removeprefix("query.")
    sent = [value for name, value in parse_qsl(judged.asked.query, True) if name.lower() == wanted]
    given = _argument(call, wanted)
    return bool(_WANTS_LIST.search(violation.message)) and isinstance(given, list) and given == sent and len(sent) == 1


def _object_left_out(call: Call, judged: Judged, violation: Violation) -> bool:
    """An optional object in a query with a property that is required in it, which the call does not have."""
    wanted = violation.place.removeprefix("query.")
    return violation.code == "required" and wanted != violation.place and _argument(call, wanted) is None


def _names_meet(call: Call, judged: Judged, violation: Violation) -> bool:
    """A parameter of the query, and a property of an object there whose properties are parameters (`explode`)."""
    wanted = violation.place.removeprefix("query.").rpartition(".")[2]
    meets = any(isinstance(value, Mapping) and wanted in map(str.lower, value) for value in call.arguments.values())
    sent = [name for name, _ in parse_qsl(judged.asked.query, True) if name.lower() == wanted]
    return wanted != violation.place and meets and _argument(call, wanted) is not None and len(sent) > 1


def _paths_meet(call: Call, judged: Judged, violation: Violation) -> bool:
    """Return whether `/a/{x}` and `/a/{y}` both exist, which is against the specification: Prism confuses them."""
    wanted = violation.place.removeprefix("path.")
    return wanted != violation.place and _argument(call, wanted) is None


def _object_in_a_form(call: Call, judged: Judged, violation: Violation) -> bool:
    """A part that is an object, which is sent as `application/json`, the default of the specification."""
    wanted = violation.place.removeprefix("body.")
    said = rb'name="%b"\r\nContent-Type: application/json\r\n' % re.escape(wanted.encode())
    return violation.message.endswith("must be object") and bool(re.search(said, judged.asked.body))


def _argument(call: Call, wanted: str) -> Any:
    arguments: Mapping[str, Any] = {name.lower(): value for name, value in call.arguments.items()}
    return arguments.get(wanted)


_RULES: tuple[tuple[Callable[[Call, Judged, Violation], bool], Verdict, str], ...] = (
    (_one_of_a_nullable_list, "Prism's", "takes one item of an array that can be null for a text"),
    (_object_left_out, "Prism's", "takes an optional object in a query that is omitted for an empty one"),
    (_object_in_a_form, "Prism's", "takes an object that is a part of a form, as JSON, for a text"),
    (_paths_meet, "the document's", "has two paths that differ in the names of their parameters alone"),
    (_names_meet, "the document's", "has a parameter and a property of an object of one name in a query"),
)


def _said(refusal: Refusal) -> str:
    places = "; ".join(f"{each.place}: {each.message}" for each in refusal.violations)
    return f"{refusal.code} {places or refusal.detail}"[:600]
