"""Accounts for retained bytes per caller, within a budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .....state.budget import Budget, Whose

Account: TypeAlias = Mapping[str, Any] | str
"""A caller: the principal of its token, or an IP address."""


class Accounts:
    """Bytes of one kind, by caller."""

    def __init__(self, budget: Budget) -> None:
        """Create empty accounts with limits per caller and in total."""
        self._budget = budget
        self._bytes: Counter[str] = Counter()

    def find_limit(self, account: Account, size: int) -> Whose | None:
        """Return the limit that more bytes from a caller would exceed; `None` if there is room."""
        return self._budget.refuses(size, self._bytes[make_key(account)], self._bytes.total())

    def has_room(self, account: Account, size: int) -> bool:
        """Return whether there is room for more bytes from a caller."""
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
    """Return a caller's key: without a token, the IPv4 address or the /64 network of an IPv6 address."""
    if not isinstance(account, str):
        return json.dumps(account, sort_keys=True, default=str)
    if ":" not in account:
        return account
    try:
        return str(ip_network((account.partition("%")[0], 64), strict=False))
    except ValueError:
        return account
