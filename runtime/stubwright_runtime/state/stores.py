"""The places where state can be kept, by their URLs.

What Redis needs is loaded only where it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .addresses import has_redis_scheme, show_scheme
from .budget import Budget
from .memory import MemoryStore
from .store import MEMORY, Store, StoreConfigurationError

if TYPE_CHECKING:
    from ..package import Package


def store_at(url: str, package: Package) -> Store:
    """Return the store at a URL.

    Args:
        url: `memory://`, or `redis://…`, `rediss://…` or `unix://…` as the library `redis` takes it. `?prefix=…` is a
            prefix for all names in Redis; by default the server's name.
        package: The package whose state it is.

    Raises:
        StoreConfigurationError: The URL has an unknown scheme.
        MissingExtraError: A package is  not installed.
    """
    if url == MEMORY:
        return MemoryStore(budget=Budget.from_manifest(package.manifest))
    if has_redis_scheme(url):
        from .redis import make_redis_store

        return make_redis_store(url, package)
    # Only the scheme is shown, since the rest may contain a password.
    given = f"a URL that begins with {scheme}" if (scheme := show_scheme(url)) else "a text without a URL's scheme"
    raise StoreConfigurationError(
        f"{given} is not a place for state; use memory:// or redis://HOST:PORT (rediss:// with TLS), without quotes"
    )
