"""The protocol for stores of a server's state: `memory://` in one process, or `redis://` shared by several."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ..values.json import is_group

MEMORY: Final = "memory://"
"""The in-memory store's URL."""


RETRY_AFTER: Final = 5
"""Seconds after which callers should retry."""


class StateLost(Exception):
    """The store is unavailable.

    The message is for the log; callers get `describe_lost_state`.

    Attributes:
        is_unknown: Whether the change might have been stored.
    """

    def __init__(self, why: str = "", *, is_unknown: bool = False) -> None:
        """Create an error with a reason for the log."""
        super().__init__(why)
        self.is_unknown = is_unknown


def describe_lost_state(*, is_unknown: bool) -> str:
    """Return the error message that callers get while the store is unavailable."""
    if is_unknown:
        effect, advice = "the request may have taken effect", "Check its effects, and try again"
    else:
        effect, advice = "the request had no effect", "Try again"
    return f"The server's store cannot be reached; {effect}. {advice} in {RETRY_AFTER} seconds."


def find_state_lost(error: BaseException) -> StateLost | None:
    """Return the `StateLost` in an exception, or in a group that contains no other exceptions."""
    if is_group(error):
        losses = [find_state_lost(loss) for loss in error.exceptions]
        # If one outcome is unknown, so is the overall outcome.
        return max((loss for loss in losses if loss is not None), key=_unknown) if all(losses) else None
    return error if isinstance(error, StateLost) else None


@contextmanager
def mark_after_change() -> Generator[None, None, None]:
    """Set `is_unknown` on a `StateLost` raised in the block, because an earlier change was stored."""
    try:
        yield
    except StateLost as error:
        raise StateLost(str(error), is_unknown=True) from error


def _unknown(error: StateLost) -> bool:
    return error.is_unknown


class StoreConfigurationError(ValueError):
    """A store's URL is invalid or unsupported."""


@dataclass(frozen=True, slots=True)
class Record:
    """A stored record.

    Attributes:
        data: The stored bytes.
        version: The number of replacements; `Store.replace` compares it.
    """

    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class ClaimedRecord:
    """A record whose key another caller has already claimed.

    Attributes:
        record: The record; its data is empty if it cannot be decrypted.
        is_held: Whether any caller still holds the record's lease.
    """

    record: Record
    is_held: bool


Listener: TypeAlias = Callable[[bytes | None], Awaitable[None]]
"""Receives published data; `None` means that messages might have been missed."""


class Store(Protocol):
    """A store for records, each identified by its kind and key.

    All methods except `listen` and `run` raise `StateLost`. Durations are in seconds, by the store's clock.
    """

    @property
    def url(self) -> str:
        """The store's URL for logs, without credentials."""
        ...

    @property
    def is_shared(self) -> bool:
        """True if other processes share the store."""
        ...

    @property
    def pool(self) -> Any:
        """The connection pool, for other users of Redis, or `None` for the in-memory store."""
        ...

    @property
    def prefix(self) -> str:
        """The prefix for all keys."""
        ...

    async def create(
        self,
        kind: str,
        key: str,
        data: bytes,
        *,
        owner: str,
        ttl: float | None,
        idle: float | None = None,
        most: int | None = None,
        payer: str | None = None,
        head: bytes = b"",
        spare: bool = False,
        tracked: bool = False,
        room: int = 0,
    ) -> bool:
        """Create a record.

        Args:
            kind: The record's kind, such as `task`.
            key: The key, which must be new for the kind.
            data: The data.
            owner: The owner, for `list_owned`.
            ttl: Seconds until the record expires; `None` for never.
            idle: Seconds until the record expires unless it is read or replaced.
            most: The maximum number of the owner's records of this kind.
            payer: The principal whose budget the record counts against; by default the owner.
            head: The bytes that `list_heads` returns.
            spare: Whether the record may be evicted, oldest first, to make room in the payer's or the server's budget.
            tracked: Whether to detect if another program restores an older version, or the record after its expiry.
            room: Additional bytes that must be free in the payer's budget, for a later record.

        Returns:
            True if the record was stored; False if the owner already has `most` records.

        Raises:
            BudgetExceeded: A budget has no room for the record.
        """
        ...

    async def claim(
        self, kind: str, key: str, data: bytes, *, owner: str, ttl: float, holder: str, lease: float
    ) -> ClaimedRecord | None:
        """Create a record and acquire the lease `KIND:KEY`, unless a record with this key exists.

        Args:
            kind: The record's kind.
            key: The key.
            data: The data.
            owner: The owner; the record counts against its budget.
            ttl: Seconds until the record expires.
            holder: The lease's holder.
            lease: Seconds until the lease expires.

        Returns:
            The existing record, or `None` if the new one was stored.

        Raises:
            BudgetExceeded: A budget has no room for the record.
        """
        ...

    async def get(self, kind: str, key: str) -> Record | None:
        """Return a record, or `None` if it does not exist. This restarts the record's idle time."""
        ...

    async def measure(self, kind: str, key: str) -> int | None:
        """Return a record's size, or `None` if it does not exist. This does not restart the record's idle time."""
        ...

    async def replace(
        self,
        kind: str,
        key: str,
        data: bytes,
        *,
        version: int,
        head: bytes = b"",
        payer: str | None = None,
        final: bool = False,
    ) -> bool:
        """Replace a record's data, and restart its idle time, if `version` is current. Return whether it was.

        Args:
            kind: The record's kind.
            key: The key.
            data: The new data.
            version: The current version.
            head: As in `create`.
            payer: The payer of a tracked record.
            final: Whether this is the last version, which may exceed the budget.

        Raises:
            BudgetExceeded: A budget has no room for the additional bytes.
        """
        ...

    async def delete(self, kind: str, key: str, *, payer: str | None = None) -> bool:
        """Delete a record and return whether it existed. See `replace` for `payer`."""
        ...

    async def list_owned(self, kind: str, owner: str) -> list[tuple[str, Record]]:
        """Return an owner's records of this kind, with their keys, oldest first. This does not restart idle times."""
        ...

    async def list_heads(self, kind: str, owner: str) -> list[bytes]:
        """Return the heads of an owner's records of this kind, oldest first. This does not restart idle times."""
        ...

    async def use_nonce(self, nonce: str, seconds: float, *, payer: str = "") -> bool:
        """Use a nonce and return whether it was new; only one of several concurrent calls succeeds.

        The number of nonces per payer is limited; beyond the limit, older ones count as used.

        Args:
            nonce: A nonce from `make_nonce`.
            seconds: How long to store the nonce, in seconds.
            payer: The principal whose limit the nonce counts against.
        """
        ...

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Acquire or renew a lease for `seconds`, and return whether the holder now has it."""
        ...

    async def release(self, name: str, holder: str) -> None:
        """Release a lease if the holder has it."""
        ...

    def renew(self, name: str, holder: str, seconds: float) -> bool:
        """Renew a lease if the holder still has it, and return whether the lease was renewed.

        The call blocks; only threads that renew leases while the event loop is blocked use it.
        """
        ...

    async def list_members(self, name: str) -> frozenset[str]:
        """Return all members of a set."""
        ...

    async def switch(self, name: str, member: str, *, on: bool) -> bool:
        """Add a member to a set, or remove it, and return whether the set changed."""
        ...

    async def publish(self, topic: str, data: bytes) -> None:
        """Send data to all listeners of a topic, in this process and in others."""
        ...

    def listen(self, topic: str, listener: Listener) -> Callable[[], None]:
        """Subscribe a listener to published data while the store runs, and return a function that unsubscribes it."""
        ...

    async def list_secrets(self) -> Sequence[bytes]:
        """Return 32-byte keys that only processes using this store share, newest first."""
        ...

    def exchange(self, *, writes: bool) -> AbstractAsyncContextManager[None]:
        """Limit the time for an exchange over `pool`. Raises StateLost."""
        ...

    async def check(self) -> bool:
        """Return whether the store is available."""
        ...

    def run(self) -> AbstractAsyncContextManager[None]:
        """Receive other processes' messages during the block, which can be entered repeatedly."""
        ...
