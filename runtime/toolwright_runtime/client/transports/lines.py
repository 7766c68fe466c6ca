"""The lines of a server on standard output, as the SDK's transport reads them: each bounded, each whole.

The SDK keeps a line until it ends, however long that takes, and one byte that is not UTF-8 stops its reading, so that
calls wait for ever. It can be told an encoding by name; this one gives whole lines only, ends the connection at one
that is too long, and takes note of the size of each, and whether it was UTF-8.
"""

from __future__ import annotations

import codecs
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .bounds import Bound, Bounds, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from _typeshed import ReadableBuffer

_NOW: ContextVar[LineReader | None] = ContextVar("lines", default=None)


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of a line that the SDK reads: its bytes, and whether they are UTF-8."""

    size: int
    is_text: bool


@dataclass(slots=True)
class LineReader:
    """The lines of one connection.

    Attributes:
        bounds: How many bytes may come.
        longest: Gives the bound of a line now.
        too_large: Is told, once, why nothing more is read.
        read: Those that the SDK was given and that were not looked at yet, in their order.
    """

    bounds: Bounds
    longest: Callable[[], Bound]
    too_large: Callable[[TooLargeError], None]
    read: deque[Line] = field(default_factory=deque[Line])
    _begun: bytearray = field(default_factory=bytearray)
    _ended: bool = False

    @contextmanager
    def use(self) -> Generator[None, None, None]:
        """Let a transport that is opened in the block read these lines, in the encoding `ENCODING`."""
        token = _NOW.set(self)
        try:
            yield
        finally:
            _NOW.reset(token)

    def text(self, data: bytes) -> str:
        """The lines that end in `data`, with their ends; what follows the last is kept until it ends, too."""
        if self._ended:
            return ""
        try:
            self.bounds.add(len(data))
            bound = self.longest()
            if b"\n" not in data:
                self._begun += data
                self.bounds.check(len(self._begun), bound)
                return ""
            *lines, rest = bytes(self._begun + data).split(b"\n")
            for line in (*lines, rest):
                self.bounds.check(len(line), bound)
        except TooLargeError as error:
            self._ended = True
            self._begun.clear()
            self.too_large(error)
            return ""
        self._begun = bytearray(rest)
        return "".join(f"{self._decoded(line)}\n" for line in lines)

    def _decoded(self, line: bytes) -> str:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text, is_text = line.decode(errors="replace"), False
        else:
            is_text = True
        self.read.append(Line(len(line), is_text))
        return text


class _Decoder(codecs.IncrementalDecoder):
    """The lines of the connection in whose context it is made."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        lines = _NOW.get()
        if lines is None:
            raise LookupError(f"{ENCODING} is only for a connection's own standard output")
        self._lines = lines

    def decode(self, input: ReadableBuffer, final: bool = False) -> str:
        return self._lines.text(bytes(input))


def _search(name: str) -> codecs.CodecInfo | None:
    if name != ENCODING:
        return None
    utf_8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(utf_8.encode, utf_8.decode, incrementaldecoder=_Decoder, name=ENCODING)


ENCODING: Final = f"lines_{id(_search):x}"
"""Python's name of the encoding; each generated package has one of its own."""

codecs.register(_search)
