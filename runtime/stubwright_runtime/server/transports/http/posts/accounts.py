"""The bytes that callers make a server over HTTP keep, within a budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .....state.budget import Budget, Whose

Account: TypeAlias = Mapping[str, Any] | str
"""The caller that bytes are retained for: the principal of a token, or without one an IP address."""


class Accounts:
    """The bytes of one kind, by callers."""

    def __init__(self, budget: Budget) -> None:
        """Take the limits on them, of one caller and in all."""
        self._budget = budget
        self._bytes: Counter[str] = Counter()

    def find_limit(self, account: Account, size: int) -> Whose | None:
        """Return the budget that lacks room for more bytes of a caller; `None` if there is room."""
        return self._budget.refuses(size, self._bytes[make_key(account)], self._bytes.total())

    def has_room(self, account: Account, size: int) -> bool:
        """Return whether there is room for more bytes of a caller."""
        return self.find_limit(account, size) is None

    def add(self, account: Account, size: int) -> None:
        """Count bytes that are retained for a caller."""
        self._bytes[make_key(account)] += size

    def remove(self, account: Account, size: int) -> None:
        """Stop counting bytes of a caller."""
        key = make_key(account)
        self._bytes[key] -= size
        if not self._bytes[key]:
            del self._bytes[key]


def make_key(account: Account) -> str:
    """Return the key of a caller; callers without a token share one for an IPv4 address, or a /64 network of IPv6."""
    if not isinstance(account, str):
        return json.dumps(account, sort_keys=True, default=str)
    if ":" not in account:
        return account
    try:
        return str(ip_network((account.partition("%")[0], 64), strict=False))
    except ValueError:
        return account
