"""A message and its sender, as all steps of a server see it, over any transport.

Depends on no transport and not on the SDK: `direct` makes exchanges of incoming messages, and `embedding` of those that
the SDK passes on. Steps are middlewares: each takes the rest of the chain and an exchange, and gives the result as it
goes on the wire.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .context import Channel

_In = TypeVar("_In")
_Out = TypeVar("_Out")

Result: TypeAlias = Mapping[str, Any] | None
"""The result of a message; `None` for a notification."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The sender of a message over HTTP, as telemetry describes it.

    Attributes:
        address: Its host and port; `None` if the server does not know them.
        session: The id of its session; `None` if it has none.
        http_version: The version of HTTP that it speaks, such as `1.1`.
    """

    address: tuple[str, int] | None
    session: str | None
    http_version: str


class Exchange(Protocol):
    """One message."""

    @property
    def method(self) -> str:
        """The method, such as `tools/call`."""
        ...

    @property
    def params(self) -> Mapping[str, Any] | None:
        """The parameters, as they came."""
        ...

    @property
    def id(self) -> str | int | None:
        """The JSON-RPC id; `None` for a notification."""
        ...

    @property
    def revision(self) -> str:
        """The revision that the sender speaks."""
        ...

    @property
    def over_http(self) -> bool:
        """True if it came over HTTP."""
        ...

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that the client program reports."""
        ...

    @property
    def peer(self) -> Peer | None:
        """The sender over HTTP, if it is known."""
        ...

    @property
    def traceparent(self) -> str | None:
        """The header `traceparent` of a request over HTTP."""
        ...

    @property
    def is_admissible(self) -> bool:
        """True if its parameters are well-formed and its sender has shaken hands, if its revision requires that."""
        ...

    def make_channel(self) -> Channel:
        """Return the way to its sender."""
        ...

    def with_params(self, params: Mapping[str, Any]) -> Exchange:
        """Return a copy with other parameters."""
        ...


Rest: TypeAlias = Callable[[Exchange], Awaitable[Result]]
"""The rest of the chain."""

Middleware: TypeAlias = Callable[[Rest, Exchange], Awaitable[Result]]


def chain_steps(
    steps: Sequence[Callable[[Callable[[_In], Awaitable[_Out]], _In], Awaitable[_Out]]],
    last: Callable[[_In], Awaitable[_Out]],
) -> Callable[[_In], Awaitable[_Out]]:
    """Return the whole chain, the first step first. Each step takes the rest of the chain and its argument."""
    for step in reversed(steps):
        last = partial(step, last)
    return last
