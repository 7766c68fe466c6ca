"""The store of a server's state between requests.

One protocol, two kinds: `memory://` is this process, and `redis://` is shared by all processes that serve the same
manifest, and outlives them. Both have the same interface.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ..values.json import is_group

MEMORY: Final = "memory://"
"""The store that is this process."""


RETRY_AFTER: Final = 5
"""Seconds after which callers are told to try again."""


class StateLost(Exception):
    """The store cannot be reached, so that its content is unknown.

    Its text is for the log; callers get `lost_message`.

    Attributes:
        is_unknown: Whether what was to be kept may be kept nevertheless.
    """

    def __init__(self, why: str = "", *, is_unknown: bool = False) -> None:
        """Say why, for the log."""
        super().__init__(why)
        self.is_unknown = is_unknown


def describe_lost_state(*, is_unknown: bool) -> str:
    """Return the text for all callers while the store cannot be reached."""
    if is_unknown:
        what, then = "it is unknown how much of this was done", "Check that, and try again"
    else:
        what, then = "nothing was done", "Try again"
    return f"The server's store cannot be reached; {what}. {then} in {RETRY_AFTER} seconds."


def find_state_lost(error: BaseException) -> StateLost | None:
    """Return the `StateLost` that an exception is, or that is alone in its group (of a task group)."""
    if is_group(error):
        losses = [find_state_lost(loss) for loss in error.exceptions]
        # If the outcome of one exchange is unknown, the joint outcome is unknown.
        return max((loss for loss in losses if loss is not None), key=_unknown) if all(losses) else None
    return error if isinstance(error, StateLost) else None


@contextmanager
def mark_after_change() -> Generator[None, None, None]:
    """Mark a loss of the store in the block as of unknown outcome: something was kept before it."""
    try:
        yield
    except StateLost as error:
        raise StateLost(str(error), is_unknown=True) from error


def _unknown(error: StateLost) -> bool:
    return error.is_unknown


class StoreConfigurationError(ValueError):
    """The URL of a store is none that this server can keep its state at."""


@dataclass(frozen=True, slots=True)
class Record:
    """A stored record.

    Attributes:
        data: Its bytes.
        version: The number of its replacements; `Store.replace` compares it.
    """

    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class ClaimedRecord:
    """A record whose key another caller claimed before.

    Attributes:
        record: The record; its data are empty if this server cannot decrypt them.
        is_held: True if its lease is held.
    """

    record: Record
    is_held: bool


Listener: TypeAlias = Callable[[bytes | None], Awaitable[None]]
"""Hears what is published; `None` means that some of it may have been missed."""


class Store(Protocol):
    """A store of records, by kind and key.

    All methods but `listen` and `run` raise `StateLost`. Seconds are from now on, by the store's own clock.
    """

    @property
    def url(self) -> str:
        """The URL of the store, without parts that no log may have."""
        ...

    @property
    def is_shared(self) -> bool:
        """True if other processes share it, and it outlives this one."""
        ...

    @property
    def pool(self) -> Any:
        """Its connections, for libraries that keep something there by themselves; `None` in memory."""
        ...

    @property
    def prefix(self) -> str:
        """The prefix of all its names, for such libraries."""
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
            kind: Its kind, such as `task`.
            key: Its key, which is new in its kind.
            data: The bytes to keep.
            owner: Its owner, for `list_owned`.
            ttl: Seconds after which it has ended.
            idle: Seconds after which it has ended if it was not read or replaced.
            most: The most records of this kind that one owner may have.
            payer: The payer whose budget it counts against; by default the owner.
            head: The bytes that `list_heads` returns without reading the data.
            spare: True if it may be dropped, the oldest first, to make room in its payer's budget.
            tracked: True if it counts as gone once another program with access to the store puts back an older version
                of it, or puts it back after its end.
            room: Bytes that its payer's budget must have next to, for a record that follows; they are not reserved.

        Returns:
            True if it is retained: the owner had less than `most`.

        Raises:
            BudgetExceeded: A budget has no room for it.
        """
        ...

    async def claim(
        self, kind: str, key: str, data: bytes, *, owner: str, ttl: float, holder: str, lease: float
    ) -> ClaimedRecord | None:
        """Store a new record and take the lease `KIND:KEY`, unless a record with this key exists.

        Args:
            kind: Its kind.
            key: Its key.
            data: Its bytes.
            owner: Its owner, whose budget it counts against.
            ttl: Seconds after which it expires.
            holder: The holder of the lease.
            lease: Seconds for which the lease is held.

        Returns:
            The record that exists; `None` if the new one is stored.

        Raises:
            BudgetExceeded: A budget has no room for it.
        """
        ...

    async def get(self, kind: str, key: str) -> Record | None:
        """Return a record; `None` if there is none, or it has ended. This is use for `idle`."""
        ...

    async def measure(self, kind: str, key: str) -> int | None:
        """Return the bytes that a record takes; `None` if there is none. This is not use for `idle`."""
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
        """Replace the data of this version, and return whether the version was current. This resets `idle`.

        Args:
            kind: Its kind.
            key: Its key.
            data: The new data.
            version: The current version.
            head: As in `create`.
            payer: The payer whose budget it counts against, for tracked data.
            final: Whether this is its last version, which is retained whatever the budget says.

        Raises:
            BudgetExceeded: A budget has no room for what it is larger by.
        """
        ...

    async def delete(self, kind: str, key: str, *, payer: str | None = None) -> bool:
        """Delete a record, and return whether it existed. `payer` is as in `replace`."""
        ...

    async def list_owned(self, kind: str, owner: str) -> list[tuple[str, Record]]:
        """Return all records of a kind and an owner with their keys, the oldest first. This is not use for `idle`."""
        ...

    async def list_heads(self, kind: str, owner: str) -> list[bytes]:
        """Return the heads of all records of a kind and an owner, the oldest first. This is not use for `idle`."""
        ...

    async def use_nonce(self, nonce: str, seconds: float, *, payer: str = "") -> bool:
        """Return whether a nonce is new, which is true for only one of several concurrent calls. The number of nonces
        per payer is limited; beyond it, older ones count as spent.

        Args:
            nonce: A nonce of `make_nonce`.
            seconds: The seconds for which it must be remembered.
            payer: The payer of the nonce.
        """
        ...

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Take or renew a lease for some seconds, and return whether no other holder has it."""
        ...

    async def release(self, name: str, holder: str) -> None:
        """Give a lease back if this holder has it."""
        ...

    def renew(self, name: str, holder: str, seconds: float) -> bool:
        """Renew a lease that this holder has, and return whether it had it.

        For threads other than the event loop's: it blocks, over connections of its own, so that a lease lives on while
        the event loop is blocked.
        """
        ...

    async def list_members(self, name: str) -> frozenset[str]:
        """Return all members of a set."""
        ...

    async def switch(self, name: str, member: str, *, on: bool) -> bool:
        """Put a member into a set, or take it out, and return whether that changed the set."""
        ...

    async def publish(self, topic: str, data: bytes) -> None:
        """Send data to all listeners of a topic, in this process and in others."""
        ...

    def listen(self, topic: str, listener: Listener) -> Callable[[], None]:
        """Subscribe a listener to published data while the store runs; return a function that unsubscribes it."""
        ...

    async def list_secrets(self) -> Sequence[bytes]:
        """Return the keys of 32 bytes that all processes with this store share, and only they, the newest first."""
        ...

    def exchange(self, *, writes: bool) -> AbstractAsyncContextManager[None]:
        """Bound one exchange over `pool` by the store's own deadline. Raises StateLost."""
        ...

    async def check(self) -> bool:
        """Return whether the store can be reached."""
        ...

    def run(self) -> AbstractAsyncContextManager[None]:
        """Listen to other processes during the block; it may be entered again after its end."""
        ...
