"""The bytes that callers make a server over HTTP keep, within a budget.

Takes callers and bytes; tells whether there is room for more.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....state.budget import Budget


class Accounts:
    """The bytes of one kind, by callers."""

    def __init__(self, budget: Budget) -> None:
        """Take the limits on them, of one caller and in all."""
        self._budget = budget
        self._bytes: Counter[str] = Counter()

    def has_room(self, owner: Mapping[str, Any] | None, size: int) -> bool:
        """Tell whether a caller may have so many bytes more."""
        return self._budget.refuses(size, self._bytes[_key(owner)], self._bytes.total()) is None

    def add(self, owner: Mapping[str, Any] | None, size: int) -> None:
        """Note that so many bytes of a caller are kept."""
        self._bytes[_key(owner)] += size

    def remove(self, owner: Mapping[str, Any] | None, size: int) -> None:
        """Note that so many bytes of a caller are not kept any more."""
        key = _key(owner)
        self._bytes[key] -= size
        if not self._bytes[key]:
            del self._bytes[key]


def _key(owner: Mapping[str, Any] | None) -> str:
    return json.dumps(owner, sort_keys=True, default=str)
