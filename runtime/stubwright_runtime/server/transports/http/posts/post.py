"""A pending HTTP request.

It gets a plain response, but switches to a stream if its handler sends another message or takes long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .....mcp.errors import ProtocolError
from ...lifecycle import ClientRequest
from ..events import AnswerStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..post_handler import PostHandler
    from ..sessions import Session
    from .accounts import Account

CANCELLED: Final = ProtocolError(-32800, "Request cancelled")
"""The HTTP response to a cancelled request (MCP 2025-11-25 and earlier).

Receivers SHOULD NOT respond to it (basic/utilities/cancellation). But the response to a POST must be one JSON object,
or a stream that SHOULD NOT close before the response (basic/transports); otherwise, a client whose stream broke would
reconnect forever. The official SDK sends the same response. Over stdio, the request gets no response; in MCP
2026-07-28 and later, a client cancels by closing its stream.
"""


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Post(ClientRequest):
    """One request.

    Attributes:
        is_streamed: True if the response is an event stream.
        stream: The event stream.
        session: The session; `None` if sessions are not used.
        answering: The handler for the request.
        connect: Connects the stream to the client.
        account: The caller whose memory limit applies after the client has disconnected.
        length: The message size in bytes.
    """

    answering: PostHandler
    connect: Callable[[Post], object]
    session: Session | None
    account: Account
    length: int
    is_streamed: bool = False
    stream: AnswerStream | None = None

    @property
    def key(self) -> str | int:
        """The JSON-RPC ID."""
        if self.id is None:
            raise RuntimeError("a notification gets no response")
        return self.id

    def switch_to_stream(self) -> None:
        """Switch to an event stream unless the request has switched or finished."""
        if not self.is_streamed and not self.has_ended:
            self.is_streamed = True
            self.stream = AnswerStream() if self.session is None else self.session.open_stream()
            self.connect(self)

    def release(self) -> None:
        """Close the connection so that the client reconnects; keep it if the memory limit is reached."""
        if self.has_ended or self.answering.may_outlive_client(self):
            self._close_connection()

    def expire(self) -> None:
        """Close the connection; cancel the request if the memory limit is reached."""
        if not self.has_ended and not self.answering.may_outlive_client(self):
            self.cancel()
        self._close_connection()

    def abandon(self) -> None:
        """Process a disconnect; cancel the request if the client cannot reconnect or the memory limit is reached."""
        if self.stream is not None and self.stream.is_logged:
            self.stream.abandon()
            if not self.has_ended and not self.answering.may_outlive_client(self):
                self.cancel()
        elif not (self.outlives_client and self.answering.may_outlive_client(self)):
            self.cancel()

    def _close_connection(self) -> None:
        self.switch_to_stream()
        if self.stream is not None:
            self.stream.release()

    async def send_before_response(self, message: bytes) -> None:
        """Send a message before the response, on the stream or, if it has closed, on the session's stream."""
        self.switch_to_stream()
        if self.stream is not None and not self.stream.has_ended:
            await self.stream.send(message)
        elif self.session is not None:
            await self.session.listening.send(message)
