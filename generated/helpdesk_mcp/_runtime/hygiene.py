# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""What both ends of a connection hold content to: clean texts, base64 that is base64, and MIME types that are some.

Takes and gives plain values; knows nothing of blocks, and imports nothing of the protocol's library (MCP 2025-11-25,
server/tools, "Security Considerations": servers MUST sanitize tool outputs, clients SHOULD validate tool results).
"""

from __future__ import annotations

import binascii
import re
from typing import Final

from .texts import joined

# C0 but for tab, line feed and carriage return; DEL; C1; bidirectional embeddings, overrides and isolates.
_UNSAFE: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_SUSPECT: Final = re.compile(f"[{_UNSAFE}\ud800-\udfff]")
_REMOVED: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences (ECMA-48, 5.4): colours, cursor movements
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # strings (8.3): titles, hyperlinks
    r"|\x1b[ -/]*[0-~]"  # other escape sequences
    f"|[{_UNSAFE}]"
)
_ESCAPED: Final = re.compile(f"[{_UNSAFE}]")


def clean(text: str) -> str:
    """`text` without control characters, escape sequences and bidirectional overrides, and with whole characters."""
    return text if _SUSPECT.search(text) is None else _REMOVED.sub("", joined(text))


def escaped(json_text: str) -> str:
    """The JSON text of a value with `\\uXXXX` for each character that `clean` would remove."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # RFC 9110, 5.6.2, "token"
_MIME_TYPE: Final = re.compile(rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"[^"\\\x00-\x1f\x7f]*"))*')


def checked_mime_type(mime_type: str, kind: str | None = None) -> str:
    """`mime_type` itself, where it is one (RFC 9110, 8.3.1) and, with `kind`, of that top-level type.

    Raises:
        ValueError: It is not.
    """
    if not _MIME_TYPE.fullmatch(mime_type):
        raise ValueError(f"{mime_type!r} is not a MIME type")
    if kind is not None and not mime_type.lower().startswith(f"{kind}/"):
        raise ValueError(f"{mime_type!r} is not the MIME type of an {kind} block; it starts with {kind}/")
    return mime_type


def checked_base64(data: str) -> str:
    """`data` itself, where it is base64 (RFC 4648, section 4).

    Raises:
        ValueError: It is not.
    """
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:
        raise ValueError(f"the data is not base64: {error}") from None
    return data
