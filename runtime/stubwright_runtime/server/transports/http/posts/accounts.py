"""Counts the bytes that are retained for each caller, up to a limit per caller and in total."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .....state.budget import Budget, Whose

Account: TypeAlias = Mapping[str, Any] | str
"""A caller: the token's claims that identify the principal, or the client's IP address."""


class Accounts:
    """The retained bytes for one purpose, by caller."""

    def __init__(self, budget: Budget) -> None:
        """Create empty accounts with a limit per caller and a limit in total, in bytes."""
        self._budget = budget
        self._bytes: Counter[str] = Counter()

    def find_limit(self, account: Account, size: int) -> Whose | None:
        """Return the limit that additional bytes would exceed, the caller's or the total; `None` if both allow them."""
        return self._budget.refuses(size, self._bytes[make_key(account)], self._bytes.total())

    def has_room(self, account: Account, size: int) -> bool:
        """Return whether a caller's additional bytes are within both limits."""
        return self.find_limit(account, size) is None

    def add(self, account: Account, size: int) -> None:
        """Add bytes to a caller's account."""
        self._bytes[make_key(account)] += size

    def remove(self, account: Account, size: int) -> None:
        """Subtract bytes from a caller's account."""
        key = make_key(account)
        self._bytes[key] -= size
        if not self._bytes[key]:
            del self._bytes[key]


def make_key(account: Account) -> str:
    """Return a caller's key: the token's claims or, for a caller without a token, its IP address.

    For IPv6, the key is the address's /64 network.
    """
    if not isinstance(account, str):
        return json.dumps(account, sort_keys=True, default=str)
    if ":" not in account:
        return account
    try:
        return str(ip_network((account.partition("%")[0], 64), strict=False))
    except ValueError:
        return account
