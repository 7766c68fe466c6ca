"""A cache of the proofs of one comparison, with a limit on their total cost.

The cost is estimated from the sizes of the schemas, and not measured, so that a comparison has the same result on every
machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from stubwright.diff.subsumption.proof import covers, find_rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from stubwright.diff.subsumption.proof import Judge
    from stubwright.ir import Json


_Key: TypeAlias = tuple[str, str, str, str]
_Answer = TypeVar("_Answer")


@dataclass
class ProofMemory:
    """The results of proofs about pairs of schemas.

    `effort` is the effort that proofs may still take: each takes the square of the number of characters of its schemas.
    The first one is always tried.
    """

    effort: int
    _covered: dict[_Key, bool] = field(default_factory=dict)
    _rejected: dict[_Key, tuple[Json, ...]] = field(default_factory=dict)

    def covers(self, wide: Judge, narrow: Judge) -> bool:
        """Return whether it is proved that `wide` accepts every instance that `narrow` accepts."""
        return self._recall(self._covered, wide, narrow, covers, otherwise=False)

    def find_rejected(self, wide: Judge, narrow: Judge) -> tuple[Json, ...]:
        """Return a schema of instances that `narrow` accepts and `wide` does not, as a hint; may be none."""

        def find(wide: Judge, narrow: Judge) -> tuple[Json, ...]:
            hint = find_rejected(wide, narrow)
            return () if hint is None else (hint,)

        return self._recall(self._rejected, wide, narrow, find, otherwise=())

    def _recall(
        self,
        known: dict[_Key, _Answer],
        wide: Judge,
        narrow: Judge,
        find: Callable[[Judge, Judge], _Answer],
        *,
        otherwise: _Answer,
    ) -> _Answer:
        key = (json.dumps(wide.schema), wide.formats, json.dumps(narrow.schema), narrow.formats)
        if key not in known:
            if self.effort <= 0:
                return otherwise
            self.effort -= (len(key[0]) + len(key[2])) ** 2
            known[key] = find(wide, narrow)
        return known[key]
