"""Stores results that are too large for a response, so that clients can read them as resources."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...state.store import Store
    from ..core.principal import Principal

_KIND: Final = "large_result"
_PREFIX: Final = "kept://result/"


async def store_result(store: Store, principal: Principal, data: bytes, mime_type: str, ttl: float) -> str:
    """Store a result for its caller and return its URI.

    Other records of the caller can evict the result.

    Raises:
        BudgetExceeded: The result does not fit in the caller's storage, or in the server's.
        StateLost: The store is unavailable.
    """
    uri = f"{_PREFIX}{secrets.token_urlsafe(24)}"
    key, record = _make_key(principal, uri), b"\n".join([mime_type.encode(), data])
    await store.create(_KIND, key, record, owner=principal.client_key, ttl=ttl, payer=principal.key, spare=True)
    return uri


async def find_result(store: Store, principal: Principal, uri: str) -> tuple[bytes, str] | None:
    """Return the data and the media type of a caller's result, or `None` if none is stored. Raises StateLost."""
    record = await store.get(_KIND, _make_key(principal, uri)) if uri.startswith(_PREFIX) else None
    if record is None:
        return None
    mime_type, _, data = record.data.partition(b"\n")
    return data, mime_type.decode()


def _make_key(principal: Principal, uri: str) -> str:
    return f"{principal.client_key} {uri}"
