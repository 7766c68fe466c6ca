"""Changes of policies: limits, scopes, confirmations, and what is done to results.

A key that is absent is compared as what it means then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.changes import Change
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.server.calls.sizes import ARGUMENTS, TASK_ARGUMENTS
from stubwright_runtime.values import units

if TYPE_CHECKING:
    from stubwright.diagnostics import Place
    from stubwright.diff.changes import Impact

DEFAULTS: Final[Mapping[str, Any]] = {"confirm": False, "onStateLoss": "closed", "sanitize": "text", "trusted": False}
"""The meaning of an absent key; an absent limit limits only the size of arguments."""

ONCE_FOR: Final = "24h"
"""The meaning of an absent `for` of `once`."""

_REFUSED: Final = "calls that were allowed may be refused now"


def _is_rate_as_wide(new: tuple[int, int], old: tuple[int, int]) -> bool:
    """Return whether one rate admits all that another admits: as much as fits into all windows that touch its own."""
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
"""Limits: how each is read, and whether one admits whatever another one does."""


def compare_policies(
    about: str, before: Mapping[str, Any], after: Mapping[str, Any], at: tuple[Place, Place]
) -> Iterator[Change]:
    """Yield changes of a policy: of one tool, or the default of all."""
    for key in dict.fromkeys((*after, *before)):
        if key.startswith("x-") or are_same(before.get(key), after.get(key)):
            continue
        was, now = (side.get(key) for side in (before, after))
        was, now = (DEFAULTS.get(key) if value is None else value for value in (was, now))
        places = at[0] / key, at[1] / key
        if key == "scopes":
            yield from _compare_scopes(about, was or (), now or (), places)
            continue
        words = f"`{key}` was {_quote(was)}, and is {_quote(now)}"
        if before.get(key) is not None and after.get(key) is None:
            rest = f", and is {_quote(now)} without it" if now is not None else ""
            words = f"`{key}` is gone; it was {_quote(was)}{rest}"
        impact, why = _judge(key, was, now)
        yield Change("SW520", "wire", impact, about, words, *places, why)


def compare_result_budgets(about: str, was: int | None, now: int | None, at: tuple[Place, Place]) -> Iterator[Change]:
    """Yield the change of how many tokens results may have: of one tool, or the default of all.

    Args:
        about: Whose results.
        was: The old limit; None without one.
        now: The new one.
        at: Where the old and the new `budget` stand.
    """
    if was == now:
        return
    is_less = now is not None and (was is None or now < was)
    yield Change(
        "SW520",
        "wire",
        "may break" if is_less else "compatible",
        about,
        f"`budget.result` was {_quote(was)}, and is {_quote(now)}",
        at[0] / "result",
        at[1] / "result",
        "whole results may now be cut or omitted" if is_less else None,
    )


def _judge(key: str, was: Any, now: Any) -> tuple[Impact, str | None]:
    """Return the impact of another value of a key, and the reason."""
    if are_same(was, now) or key in ("redact", "trusted"):
        return "cosmetic", None
    if key in _LIMITS:
        return _classify_limit(key, was, now)
    match key:
        case "onStateLoss":
            closes = now == "closed"
            why = "calls that count something are refused now while the server's store cannot be reached"
            return ("breaking", why) if closes else ("compatible", None)
        case "sanitize":
            return "may break", "texts in results may change"
        case "confirm":
            return _classify_confirmation(was, now)
        case "once":
            return _classify_once(was, now)
    return "may break", _REFUSED


def _classify_limit(key: str, was: Any, now: Any) -> tuple[Impact, str | None]:
    read, is_as_wide = _LIMITS[key]
    if key == "maxArgumentBytes":  # its default is lower for tasks than for plain calls
        was, now = was or ARGUMENTS, now or TASK_ARGUMENTS
    if now is None:
        return "compatible", None
    if was is None:
        return "may break", _REFUSED
    old, new = read(was), read(now)
    if old == new:
        return "cosmetic", "it means the same"
    return ("compatible", None) if is_as_wide(new, old) else ("may break", _REFUSED)


def _classify_confirmation(was: Any, now: Any) -> tuple[Impact, str | None]:
    """Judge a change of a confirmation: whether it is required, and what happens if the client cannot ask."""
    old, new = (_get_fallback(value) for value in (was, now))
    if old == new:
        return "cosmetic", "what the user is asked before a call changed"
    if new == "none" or (new == "allow" and old == "refuse"):
        return "compatible", None
    if new == "allow":
        return "may break", "the user is asked before a call now"
    return "may break", "clients that cannot ask their user are refused now"


def _classify_once(was: Any, now: Any) -> tuple[Impact, str | None]:
    """Judge a change of `once`: whether clients that repeat a call can still rely on a single effect."""
    if was is None:
        return "may break", "a call with the key of an earlier one gets the first result, or is refused, now"
    if now is None:
        return "breaking", "a repeated call takes effect again now"
    old, new = (once["key"] if isinstance(once["key"], str) else sorted(once["key"]) for once in (was, now))
    if old != new:
        return "breaking", "calls with the same former key may take effect again now"
    before, after = (units.parse_duration(once.get("for", ONCE_FOR)) for once in (was, now))
    if after < before:
        return "breaking", "a call that is repeated later takes effect again now"
    runs_before, runs = (once.get("onUnknown") == "run" for once in (was, now))
    if runs and not runs_before:
        return "breaking", "a repeated call takes effect again now if the fate of the first one is unknown"
    if runs_before and not runs:
        return "may break", _REFUSED
    return ("cosmetic", "it means the same") if before == after else ("compatible", None)


def _get_fallback(confirm: Any) -> str:
    if not confirm:
        return "none"
    return str(confirm.get("fallback", "refuse")) if isinstance(confirm, dict) else "refuse"


def _compare_scopes(about: str, was: Any, now: Any, places: tuple[Place, Place]) -> Iterator[Change]:
    more, less = (
        [scope for scope in scopes if scope not in other_scopes] for scopes, other_scopes in ((now, was), (was, now))
    )
    if more:
        yield Change("SW515", "wire", "breaking", about, f"it requires {_name_scopes(more)} now", *places)
    if less:
        yield Change("SW515", "wire", "compatible", about, f"it no longer requires {_name_scopes(less)}", *places)


def _name_scopes(names: list[str]) -> str:
    return f"the scope{'s' if len(names) > 1 else ''} {', '.join(f'`{name}`' for name in names)}"


def _quote(value: Any) -> str:
    return "absent" if value is None else f"`{value if isinstance(value, str) else json.dumps(value)}`"
