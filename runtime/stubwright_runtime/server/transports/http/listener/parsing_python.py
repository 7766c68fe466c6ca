"""HTTP parsed in Python, by h11, which comes with uvicorn."""

from __future__ import annotations

from uvicorn.protocols.http.h11_impl import H11Protocol

from .connections import Connection


class H11Connection(Connection, H11Protocol):  # type: ignore[misc]
    """One connection."""
