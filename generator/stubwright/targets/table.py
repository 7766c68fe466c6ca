"""Reads the table of targets (`targets.json`): the rules for tools of each client and API, with their sources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

Certainty: TypeAlias = Literal["documented", "source code", "measured", "reported", "derived"]
"""The evidence for a rule: the vendor's documentation or source code, a trial, user reports, or other rules."""

_YEAR: Final = timedelta(days=365)

_IGNORED: Final = frozenset({"ignores", "ignores at root"})

PORTABLE: Final = "portable"
"""The target that represents all others, which is the default."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A target's rule for tools.

    Attributes:
        kind: The rule's kind. `rules.py` has a function for each kind.
        value: The rule's parameter: a pattern, a limit, or keywords.
        source: The evidence's URL.
        read: The day on which the source was read, as YYYY-MM-DD.
        certainty: The kind of evidence.
        is_lossy: True if the target accepts tools that violate the rule, but ignores parts of them.
        fix: The fix, if the default fix of the kind does not apply.
        consequence: The consequence of a violation, if it differs from the target's.
    """

    kind: str
    value: Any
    source: str
    read: str
    certainty: Certainty
    is_lossy: bool = False
    fix: str = ""
    consequence: str = ""

    def is_old(self, today: date) -> bool:
        """Return whether the source was read more than a year before a day, so that the rule could be outdated."""
        return date.fromisoformat(self.read) < today - _YEAR

    @property
    def is_sure(self) -> bool:
        """True if the evidence is the vendor's documentation, its source code, or a trial."""
        return self.certainty in ("documented", "source code", "measured")


@dataclass(frozen=True, slots=True)
class Target:
    """A client or an API.

    Attributes:
        name: The name in manifests and for `--target`.
        title: The display name.
        consequence: The consequence of violating a rule.
        rules: The rules for tools.
        note: Advice for the target's users.
    """

    name: str
    title: str
    consequence: str
    rules: tuple[Rule, ...]
    note: str = ""


class _Table(Mapping[str, Target]):
    @cached_property
    def _document(self) -> Mapping[str, Any]:
        document: Mapping[str, Any] = json.loads((Path(__file__).parent / "targets.json").read_text("utf-8"))
        return document

    @cached_property
    def _targets(self) -> Mapping[str, Target]:
        return {name: _read(name, entry) for name, entry in self._document["targets"].items()}

    def list_presets(self) -> list[str]:
        return [*self._document["presets"]]

    def list_names(self) -> list[str]:
        return [*self.list_presets(), *self]

    def expand(self, names: Iterable[str]) -> tuple[str, ...]:
        presets: Mapping[str, Sequence[str]] = self._document["presets"]
        return tuple(dict.fromkeys(target for name in names for target in presets.get(name, (name,))))

    def __getitem__(self, name: str) -> Target:
        return self._targets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def __len__(self) -> int:
        return len(self._targets)


def _read(name: str, entry: Mapping[str, Any]) -> Target:
    rules = tuple(
        Rule(
            rule["rule"],
            rule["value"],
            rule["source"],
            rule["read"],
            rule["certainty"],
            rule.get("lossy", rule["rule"] in _IGNORED),
            rule.get("fix", ""),
            rule.get("consequence", ""),
        )
        for rule in entry["rules"]
    )
    return Target(name, entry["title"], entry["consequence"], rules, entry.get("note", ""))


TARGETS: Final = _Table()
