"""Caches the proofs in one comparison and limits their total cost.

The cost is estimated from the schema sizes, so that a comparison has the same result on every machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from stubwright.diff.subsumption.proof import covers, find_rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from stubwright.diff.subsumption.proof import SchemaValidator
    from stubwright.ir import Json


_Key: TypeAlias = tuple[str, str, str, str]
_Answer = TypeVar("_Answer")


@dataclass
class ProofMemory:
    """The results of proofs about pairs of schemas.

    `effort` is the remaining budget. Each proof costs the square of the two schemas' total length. The first
    proof is always attempted.
    """

    effort: int
    _covered: dict[_Key, bool] = field(default_factory=dict)
    _rejected: dict[_Key, tuple[Json, ...]] = field(default_factory=dict)

    def covers(self, wide: SchemaValidator, narrow: SchemaValidator) -> bool:
        """Return whether `wide` provably accepts every instance of `narrow`."""
        return self._recall(self._covered, wide, narrow, covers, otherwise=False)

    def find_rejected(self, wide: SchemaValidator, narrow: SchemaValidator) -> tuple[Json, ...]:
        """Return at most one schema that describes instances which `narrow` accepts and `wide` rejects, as a search
        hint.
        """

        def find(wide: SchemaValidator, narrow: SchemaValidator) -> tuple[Json, ...]:
            hint = find_rejected(wide, narrow)
            return () if hint is None else (hint,)

        return self._recall(self._rejected, wide, narrow, find, otherwise=())

    def _recall(
        self,
        known: dict[_Key, _Answer],
        wide: SchemaValidator,
        narrow: SchemaValidator,
        find: Callable[[SchemaValidator, SchemaValidator], _Answer],
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
