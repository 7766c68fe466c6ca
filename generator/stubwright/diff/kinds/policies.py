"""Compares policies: limits, scopes, confirmations, and the handling of results.

An absent key is compared as its default.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.changes import Change, Subject
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.values import units
from stubwright_runtime.values.units import ARGUMENTS, TASK_ARGUMENTS

if TYPE_CHECKING:
    from stubwright.diff.changes import Impact

DEFAULTS: Final[Mapping[str, Any]] = {"confirm": False, "onStateLoss": "closed", "sanitize": "text", "trusted": False}
"""The values of absent keys. Only the argument size is limited by default."""

ONCE_FOR: Final = "24h"
"""The default of `policy.once.for`."""

_REFUSED: Final = "calls that were allowed may now be rejected"


def _is_rate_as_wide(new: tuple[int, int], old: tuple[int, int]) -> bool:
    # During one window of the new rate, the old rate admits its full count in each overlapping window of the old rate.
    return new[0] >= old[0] * max(1, math.ceil(new[1] / old[1]))


def _is_as_large(new: float, old: float) -> bool:
    return new >= old


_LIMITS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any, Any], bool]]]] = {
    "concurrency": (int, _is_as_large),
    "maxArgumentBytes": (units.parse_size, _is_as_large),
    "maxResultBytes": (units.parse_size, _is_as_large),
    "rateLimit": (units.parse_rate, _is_rate_as_wide),
    "timeout": (units.parse_duration, _is_as_large),
}
"""The limits, each with its parser and a function that compares a new value with an old one."""


def compare_policies(subject: Subject, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yield changes to one tool's policy or the default policy."""
    for key in dict.fromkeys((*after, *before)):
        if key.startswith("x-") or are_same(before.get(key), after.get(key)):
            continue
        was, now = (side.get(key) for side in (before, after))
        was, now = (DEFAULTS.get(key) if value is None else value for value in (was, now))
        if key == "scopes":
            yield from _compare_scopes(subject.at(key), was or (), now or ())
            continue
        words = describe_change(f"`{key}`", was, now)
        if after.get(key) is None and now is not None:
            words = f"`{key}` was removed; it was {quote_value(was)}, and the default is {quote_value(now)}"
        impact, why = _classify_policy(key, was, now)
        yield subject.at(key).change("SW520", impact, words, why)


def compare_result_budgets(subject: Subject, was: int | None, now: int | None) -> Iterator[Change]:
    """Yield the change to a result's maximum number of tokens. None means unlimited."""
    if was != now:
        is_less = now is not None and (was is None or now < was)
        message = describe_change("`budget.result`", was, now)
        why = "results may now be truncated or omitted" if is_less else None
        yield subject.at("result").change("SW520", "may break" if is_less else "compatible", message, why)


def _classify_policy(key: str, was: Any, now: Any) -> tuple[Impact, str | None]:
    if are_same(was, now) or key in ("redact", "trusted"):
        return "cosmetic", None
    if key in _LIMITS:
        return _classify_limit(key, was, now)
    match key:
        case "onStateLoss":
            closes = now == "closed"
            why = "calls that need the server's store are now rejected while it is unavailable"
            return ("breaking", why) if closes else ("compatible", None)
        case "sanitize":
            return "may break", "text in results may change"
        case "confirm":
            return _classify_confirmation(was, now)
        case "once":
            return _classify_once(was, now)
    return "may break", _REFUSED


def _classify_limit(key: str, was: Any, now: Any) -> tuple[Impact, str | None]:
    read, is_as_wide = _LIMITS[key]
    if key == "maxArgumentBytes":  # the default is lower for tasks than for plain calls
        was, now = was or ARGUMENTS, now or TASK_ARGUMENTS
    if now is None:
        return "compatible", None
    if was is None:
        return "may break", _REFUSED
    old, new = read(was), read(now)
    if old == new:
        return "cosmetic", "the new value has the same meaning"
    return ("compatible", None) if is_as_wide(new, old) else ("may break", _REFUSED)


def _classify_confirmation(was: Any, now: Any) -> tuple[Impact, str | None]:
    """Classify a change to `confirm`: to the requirement itself, or to the behavior if the client cannot ask."""
    old, new = (_get_fallback(value) for value in (was, now))
    if old == new:
        return "cosmetic", "the confirmation question changed"
    if new == "none" or (new == "allow" and old == "refuse"):
        return "compatible", None
    if new == "allow":
        return "may break", "the user must now confirm a call"
    return "may break", "calls from clients that cannot ask their user are now rejected"


def _classify_once(was: Any, now: Any) -> tuple[Impact, str | None]:
    """Classify a change to `once`. A change is breaking if repeated calls can now have several effects."""
    if was is None:
        return "may break", "a call with the key of an earlier call now returns the first result, or is rejected"
    if now is None:
        return "breaking", "a repeated call now takes effect again"
    old, new = (once["key"] if isinstance(once["key"], str) else sorted(once["key"]) for once in (was, now))
    if old != new:
        return "breaking", "calls with the same old key may now take effect again"
    before, after = (units.parse_duration(once.get("for", ONCE_FOR)) for once in (was, now))
    if after < before:
        return "breaking", "a call that is repeated later now takes effect again"
    runs_before, runs = (once.get("onUnknown") == "run" for once in (was, now))
    if runs and not runs_before:
        return "breaking", "a repeated call now takes effect again if the outcome of the first call is unknown"
    if runs_before and not runs:
        return "may break", _REFUSED
    return ("cosmetic", "the new value has the same meaning") if before == after else ("compatible", None)


def _get_fallback(confirm: Any) -> str:
    if not confirm:
        return "none"
    return str(confirm.get("fallback", "refuse")) if isinstance(confirm, dict) else "refuse"


def _compare_scopes(subject: Subject, was: Any, now: Any) -> Iterator[Change]:
    if more := [scope for scope in now if scope not in was]:
        yield subject.change("SW515", "breaking", f"it now requires {_name_scopes(more)}")
    if less := [scope for scope in was if scope not in now]:
        yield subject.change("SW515", "compatible", f"it no longer requires {_name_scopes(less)}")


def _name_scopes(names: list[str]) -> str:
    return f"the scope{'s' if len(names) > 1 else ''} {', '.join(f'`{name}`' for name in names)}"


def describe_change(subject: str, was: Any, now: Any) -> str:
    """Describe the change of a value from `was` to `now`. None means that the value is absent."""
    if was is None:
        return f"{subject} was added: {quote_value(now)}"
    if now is None:
        return f"{subject} was removed; it was {quote_value(was)}"
    return f"{subject} changed from {quote_value(was)} to {quote_value(now)}"


def quote_value(value: Any) -> str:
    """Quote a policy value for a message."""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
