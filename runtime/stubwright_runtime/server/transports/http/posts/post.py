"""A pending HTTP request.

Its response is a single JSON object, unless the handler sends another message or takes longer than 0.1 s; then it
switches to a stream.
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
    """A pending request.

    Attributes:
        is_streamed: True if the response is an event stream.
        stream: The event stream.
        session: The client's session; `None` if sessions are not used.
        answering: The `PostHandler` that received the request.
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
        """The request's JSON-RPC ID, as the key in `Session.posts`."""
        if self.id is None:
            raise RuntimeError("the message is a notification, which has no response")
        return self.id

    def switch_to_stream(self) -> None:
        """Switch the response to an event stream, unless it is already one or the request has finished."""
        if not self.is_streamed and not self.has_ended:
            self.is_streamed = True
            self.stream = AnswerStream() if self.session is None else self.session.open_stream()
            self.connect(self)

    def release(self) -> None:
        """Close the stream's connection, so that the client reconnects, unless the memory limit is reached."""
        if self.has_ended or self.answering.may_outlive_client(self):
            self._close_connection()

    def expire(self) -> None:
        """Close the stream's connection because the token has expired.

        Cancel the request if the memory limit is reached.
        """
        if not self.has_ended and not self.answering.may_outlive_client(self):
            self.cancel()
        self._close_connection()

    def abandon(self) -> None:
        """Process the client's disconnect.

        Cancel the request if the stream cannot be resumed or the memory limit is reached.
        """
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
        """Send a message before the response.

        The message is sent on the request's stream or, if that has ended, on the session's listening stream.
        """
        self.switch_to_stream()
        if self.stream is not None and not self.stream.has_ended:
            await self.stream.send(message)
        elif self.session is not None:
            await self.session.listening.send(message)
