"""Generates calls to a tool: examples, boundary values, and arguments with a single error.

A validator classifies each call: valid arguments also match each `format`, and invalid arguments are invalid even
if `format` is ignored, because servers can ignore `format` (JSON Schema 2020-12, Validation, 7.2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from stubwright.contract_tests.values import Change, Path, change_everywhere, restore
from stubwright.jsonschema import instances
from stubwright_runtime.schema.validation import Validator

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
EXAMPLE: Final = "an example"
"""The description of a case from the tool's authors."""

_BASES: Final = 4
"""The number of valid argument sets from which others are derived."""


@dataclass(frozen=True, slots=True)
class Case:
    """Arguments for one call.

    Attributes:
        is_valid: True if the `inputSchema` accepts the arguments.
        words: A description of the tested value.
        reason: The validation error, if the arguments are invalid.
        about: The names on the path to the invalid argument. Empty if several arguments are invalid.
        path: The path to the difference from `base`.
        base: The valid arguments that these arguments were derived from, if any.
    """

    arguments: Mapping[str, Any]
    is_valid: bool
    words: str
    reason: str = ""
    about: tuple[str, ...] = ()
    path: Path = ()
    base: Mapping[str, Any] | None = None


class Arguments:
    """Generates and classifies one tool's arguments."""

    def __init__(self, schema: Any) -> None:
        """Compile an `inputSchema`. Raises ValueError if the schema is invalid."""
        # Arguments are an object, even if the schema allows other types.
        self._schema = {"type": "object", **schema} if isinstance(schema, dict) else {"type": "object"}
        self._strict = Validator(schema, formats=True)
        self._lenient = Validator(schema)

    def classify(self, arguments: Any, words: str) -> Case | None:
        """Return a case, or None if the arguments are only valid if `format` is ignored."""
        if not isinstance(arguments, dict):
            return None
        if errors := self._lenient.find_errors(arguments):
            about = _find_names(errors[0]) if len(errors) == 1 else ()
            return Case(arguments, False, words, "; ".join(errors[:2]), about)
        return Case(arguments, True, words) if self._strict.accepts(arguments) else None

    def make_cases(self, examples: Iterable[Mapping[str, Any]], seed: str, most: int) -> Sequence[Case]:
        """Return distinct cases, first the examples and unchanged generated values.

        Args:
            examples: Examples from the tool's authors.
            seed: The random seed.
            most: The maximum number of cases.

        Raises:
            UnsatisfiableError: The search found no valid arguments.
        """
        given = [self.classify(dict(example), EXAMPLE) for example in examples]
        generated = [instances.make(self._schema, f"{seed}/{number}", formats=True) for number in range(_BASES)]
        first = [*given, *(self.classify(value, "generated from the schema") for value in generated)]
        kept = _drop_repeated(case for case in first if case is not None and case.is_valid)[:most]
        if not kept:
            raise instances.UnsatisfiableError("none of the tried values is valid")
        # Examples first, since tools reject most generated values and then do not return a result.
        bases = [case.arguments for case in kept[:_BASES]]
        changed = _drop_repeated(self._change(bases), {_key(case) for case in kept})
        chance = Random(f"{seed}/choice")  # noqa: S311
        return [*kept, *_choose(changed, most - len(kept), chance)]

    def repair(self, case: Case) -> Case | None:
        """Return a case with its change reverted. Return None if the case has no `base` or is still invalid."""
        if case.base is None:
            return None
        try:
            repaired = self.classify(restore(case.arguments, case.path, case.base), "repaired")
        except LookupError:
            return None
        return repaired if repaired is not None and repaired.is_valid else None

    def _change(self, bases: Sequence[Any]) -> Iterator[Case]:
        for base in bases:
            for change in change_everywhere(self._schema, base):
                case = self.classify(change.value, describe_change(change))
                if case is not None:
                    yield replace(case, path=change.path, base=base)


def describe_change(change: Change) -> str:
    """Describe a change in one line: the path and the new value."""
    place = ".".join(map(str, change.path))
    return f"`{place}`: {change.words}" if place else change.words


def _find_names(error: str) -> tuple[str, ...]:
    place = error.partition(": ")[0]
    return tuple(name for name in _NAME.findall(place) if name != "arguments")


def _choose(cases: Sequence[Case], most: int, chance: Random) -> Sequence[Case]:
    """Return at most `most` cases in the original order. Half are valid and half invalid, if possible."""
    if len(cases) <= most:
        return cases
    numbers = [[number for number, case in enumerate(cases) if case.is_valid is kind] for kind in (True, False)]
    few, many = sorted(numbers, key=len)
    share = min(len(few), most // 2)
    chosen = {*chance.sample(few, share), *chance.sample(many, most - share)}
    return [case for number, case in enumerate(cases) if number in chosen]


def _drop_repeated(cases: Iterable[Case], known: Iterable[str] = ()) -> list[Case]:
    seen = set(known)
    kept = []
    for case in cases:
        key = _key(case)
        if key not in seen:
            seen.add(key)
            kept.append(case)
    return kept


def _key(case: Case) -> str:
    return json.dumps(case.arguments, sort_keys=True)
