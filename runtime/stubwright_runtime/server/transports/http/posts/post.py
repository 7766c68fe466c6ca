"""A request over HTTP that is being answered.

It begins without a stream, to end with a plain response. If its handler sends another message, or it takes long, it is
moved to a stream; the handler does not notice.
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
"""The answer over HTTP to a request that its client cancelled, up to 2025-11-25.

Receivers SHOULD NOT answer it (basic/utilities/cancellation). Over HTTP a POST must be answered: by one JSON object, or
by a stream that SHOULD NOT end without the response (basic/transports); otherwise a client whose stream broke off would
come back for it again and again. The official SDK gives the same answer. On stdio there is none; from 2026-07-28 on a
client cancels by closing its stream.
"""


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Post(ClientRequest):
    """One request.

    Attributes:
        is_moved: True if it is answered on its stream.
        stream: The stream that it may be answered on.
        session: The session that it belongs to; `None` without sessions.
        answering: Answers it.
        connect: Gives its stream a connection.
        account: Whose memory it counts against when its client has left.
        length: The bytes of its message.
    """

    answering: PostHandler
    connect: Callable[[Post], object]
    session: Session | None
    account: Account
    length: int
    is_moved: bool = False
    stream: AnswerStream | None = None

    @property
    def key(self) -> str | int:
        """The JSON-RPC id, which every request has."""
        if self.id is None:
            raise RuntimeError("a notification is not answered")
        return self.id

    def move(self) -> None:
        """Answer it on its stream, unless that has begun."""
        if not self.is_moved and not self.has_ended:
            self.is_moved = True
            self.stream = AnswerStream() if self.session is None else self.session.open_stream()
            self.connect(self)

    def release(self) -> None:
        """Close the connection of its stream, so that its client comes back; without room to wait for it, keep it."""
        if self.has_ended or self.answering.may_go_on(self):
            self._close_connection()

    def expire(self) -> None:
        """Close the connection of its stream in any case; without room to wait for its client, cancel it, too."""
        if not self.has_ended and not self.answering.may_go_on(self):
            self.cancel()
        self._close_connection()

    def abandon(self) -> None:
        """Note that its client left. If it cannot come back, or there is no room to wait for it, cancel it."""
        if self.stream is not None and self.stream.is_kept:
            self.stream.abandon()
            if not self.has_ended and not self.answering.may_go_on(self):
                self.cancel()
        elif not (self.outlives_client and self.answering.may_go_on(self)):
            self.cancel()

    def _close_connection(self) -> None:
        self.move()
        if self.stream is not None:
            self.stream.release()

    async def say(self, message: bytes) -> None:
        """Send a message before the answer: on its stream, or on the session's stream when it has ended."""
        self.move()
        if self.stream is not None and not self.stream.is_over:
            await self.stream.send(message)
        elif self.session is not None:
            await self.session.listening.send(message)
