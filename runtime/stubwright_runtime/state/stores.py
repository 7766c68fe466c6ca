"""The places where state can be kept, by their URLs.

Takes a URL; gives the store that is there. What Redis needs is loaded only where it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .budget import Budget
from .memory import MemoryStore
from .store import MEMORY, Store, StoreConfigurationError

if TYPE_CHECKING:
    from ..package import Package


def store_at(url: str, package: Package) -> Store:
    """Return the store at a URL.

    Args:
        url: `memory://`, or `redis://…`, `rediss://…` or `unix://…` as the library `redis` takes it. There, `?prefix=…`
            is what the names of all that is kept begin with; by default that is the server's name.
        package: The package whose state it is.

    Raises:
        StoreConfigurationError: There is no store of that kind.
        MissingExtraError: What it needs is not installed.
    """
    if url == MEMORY:
        return MemoryStore(budget=Budget.from_manifest(package.manifest))
    if url.startswith(("redis://", "rediss://", "unix://")):
        from .redis import make_redis_store

        return make_redis_store(url, package)
    raise StoreConfigurationError(
        f"{url!r} is not a place for state; use memory:// or redis://HOST:PORT (rediss:// with TLS)"
    )
