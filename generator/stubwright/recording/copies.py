"""Copies messages that pass through a proxy, with size limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST: Final = 64 * 1024 * 1024
"""The maximum size of a recorded message; for larger messages, only the size is recorded."""

TOTAL: Final = 256 * 1024 * 1024
"""The maximum total size of all messages in progress."""


class Copies:
    """Copies of all messages in progress, with a limit on their total size.

    Attributes:
        largest: The maximum size of a copy, in bytes.
        total: The maximum size of all copies, in bytes.
        held: The current size of all copies, in bytes.
    """

    def __init__(self, largest: int = LARGEST, total: int = TOTAL) -> None:
        self.largest = largest
        self.total = total
        self.held = 0


class Copy:
    """A copy of a message, dropped if it exceeds a limit.

    Attributes:
        size: The size of the message so far, in bytes.
        problem: The exceeded limit, if any.
    """

    def __init__(self, copies: Copies) -> None:
        """Create an empty copy that counts towards the total of `copies`."""
        self.size = 0
        self.problem = ""
        self._copies = copies
        self._data = bytearray()

    def add(self, part: bytes) -> None:
        """Append bytes or only count them if a limit was exceeded."""
        self.size += len(part)
        if self.problem:
            return
        if self.size > self._copies.largest:
            self.problem = describe_excess(self._copies.largest)
            self.drop()
        elif self._copies.held + len(part) > self._copies.total:
            self.problem = f"the messages in progress exceed {_format(self._copies.total)}"
            self.drop()
        else:
            self._copies.held += len(part)
            self._data += part

    def pop(self) -> bytes:
        """Return the bytes and drop the copy; no bytes if a limit was exceeded."""
        data = bytes(self._data)
        self.drop()
        return data

    def drop(self) -> None:
        """Stop counting towards the total; a second call has no effect."""
        self._copies.held -= len(self._data)
        self._data = bytearray()


class Lines:
    """Splits incoming bytes into lines."""

    def __init__(self, handle: Callable[[bytes], None], skip: Callable[[int], None], largest: int = LARGEST) -> None:
        """Set the callbacks.

        Args:
            handle: Called with each line, without its line break.
            skip: Called with the size of each line that is too large.
            largest: The maximum size of a line, in bytes.
        """
        self._handle = handle
        self._skip = skip
        self._largest = largest
        self._begun = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Process more bytes."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(line)
            self.end()
        self._add(rest)

    def end(self) -> None:
        """Process the last line, which has no line break."""
        line, size = bytes(self._begun), self._size
        self._begun.clear()
        self._size = 0
        if size > self._largest:
            self._skip(size)
        else:
            self._handle(line)

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._largest:
            self._begun = bytearray()
        else:
            self._begun += data


def describe_excess(most: int) -> str:
    """Describe why a message is too large to record."""
    return f"it exceeds {_format(most)}"


def _format(size: int) -> str:
    return f"{size // 1024 // 1024} MiB"
