"""Decompresses HTTP bodies for a recording."""

from __future__ import annotations

import zlib
from typing import Final

_MOST: Final = 64 * 1024 * 1024
"""The maximum size of a decompressed body, since a small body can expand beyond the available memory."""

_GZIP: Final = frozenset({"gzip", "x-gzip"})
_WITH_HEADER: Final = 16 + zlib.MAX_WBITS
_ZLIB_METHOD: Final = 8


class EncodingError(ValueError):
    """A body cannot be decompressed; the message explains why."""


class Decoder:
    """Decompresses one body."""

    def __init__(self, encoding: str) -> None:
        """Parse the value of `Content-Encoding`, which may be empty. Raises EncodingError if an encoding is unknown."""
        names = [name.strip().lower() for name in encoding.split(",")]
        self._encodings = [name for name in names if name not in ("", "identity")]
        self._size = 0
        self._inflater: zlib._Decompress | None = None
        if len(self._encodings) > 1 or not _GZIP | {"deflate"} >= {*self._encodings}:
            raise EncodingError(f"its Content-Encoding is {encoding!r}, which is not supported")

    def feed(self, data: bytes) -> bytes:
        """Return decompressed bytes. Raises EncodingError."""
        if not self._encodings:
            return data
        if not data:
            return b""
        if self._inflater is None:
            self._inflater = zlib.decompressobj(self._find_format(data))
        try:
            decoded = self._inflater.decompress(data, _MOST - self._size + 1)
        except zlib.error:
            raise EncodingError(f"it is not {self._encodings[0]}, although its Content-Encoding is") from None
        self._size += len(decoded)
        if self._size > _MOST:
            raise EncodingError(f"decompressed, it exceeds {_MOST // 1024 // 1024} MiB")
        if self._inflater.unused_data:
            raise EncodingError("it has data after the end of the compressed stream")
        return decoded

    def end(self) -> None:
        """Raise EncodingError if the body is incomplete."""
        if self._inflater is not None and not self._inflater.eof:
            raise EncodingError("its compressed stream is incomplete")

    def _find_format(self, data: bytes) -> int:
        if self._encodings[0] in _GZIP:
            return _WITH_HEADER
        # Some servers send `deflate` without the zlib header.
        return zlib.MAX_WBITS if data[0] & 0x0F == _ZLIB_METHOD else -zlib.MAX_WBITS


def decode(encoding: str, body: bytes) -> bytes:
    """Decompress a complete body. Raises EncodingError."""
    decoder = Decoder(encoding)
    decoded = decoder.feed(body)
    decoder.end()
    return decoded
