"""Creates the store for a URL; the Redis library is imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .addresses import has_redis_scheme, show_scheme
from .budget import Budget
from .memory import MemoryStore
from .store import MEMORY, Store, StoreConfigurationError

if TYPE_CHECKING:
    from ..package import Package


def store_at(url: str, package: Package) -> Store:
    """Create the store for a URL.

    Args:
        url: `memory://`, or a URL for the `redis` library: `redis://…`, `rediss://…` or `unix://…`. `?prefix=…` sets
            the prefix for all keys in Redis; by default the server's name.
        package: The server's package.

    Raises:
        StoreConfigurationError: The URL has an unknown scheme.
        MissingExtraError: A required package is not installed.
    """
    if url == MEMORY:
        return MemoryStore(budget=Budget.from_manifest(package.manifest))
    if has_redis_scheme(url):
        from .redis import make_redis_store

        return make_redis_store(url, package)
    # Show only the scheme, because the rest might contain a password.
    given = f"a URL with the scheme {scheme}" if (scheme := show_scheme(url)) else "a string without a URL scheme"
    raise StoreConfigurationError(
        f"{given} is not supported for state; use memory:// or redis://HOST:PORT (rediss:// with TLS), without quotes"
    )
