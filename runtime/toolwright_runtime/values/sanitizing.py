"""What both ends of a connection hold content to: clean texts, base64 that is base64, and MIME types that are some.

Takes and gives plain values; knows nothing of blocks, and imports nothing of the protocol's library (MCP 2025-11-25,
server/tools, "Security Considerations": servers MUST sanitize tool outputs, clients SHOULD validate tool results).
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .text import joined

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


Extent: TypeAlias = Literal["text", "all", "none"]
"""How much is cleaned: the manifest's `policy.sanitize`."""

EXTENT: Final[Extent] = "text"
"""What holds where the manifest says nothing else."""


@dataclass(slots=True)
class Cleaned:
    """How much was taken out of texts.

    Attributes:
        strings: How many strings were changed.
        characters: How many characters were taken out of them.
    """

    strings: int = 0
    characters: int = 0


def clean(text: str, count: Cleaned | None = None) -> str:
    """`text` without control characters, escape sequences and bidirectional overrides, and with whole characters.

    Args:
        text: The text.
        count: Learns what was taken out.
    """
    if _SUSPECT.search(text) is None:
        return text
    whole_text = joined(text)
    made = _REMOVED.sub("", whole_text)
    if count is not None and made != text:
        count.strings += 1
        count.characters += len(whole_text) - len(made)
    return made


def said(text: str, extent: Extent, count: Cleaned | None = None) -> str:
    """A text of a handler, cleaned as the policy has it."""
    return joined(text) if extent == "none" else clean(text, count)


def escaped(json_text: str) -> str:
    """The JSON text of a value with `\\uXXXX` for each character that `clean` would remove."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # RFC 9110, 5.6.2, "token"
_MIME_TYPE: Final = re.compile(rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"[^"\\\x00-\x1f\x7f]*"))*')


_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f\x7f]*")  # RFC 3986, 3: a scheme, and no blanks


def checked_uri(uri: str) -> str:
    """`uri` itself, where it is an absolute URI (RFC 3986, 4.3; letters of all scripts are taken as they are).

    Raises:
        ValueError: It is not.
    """
    if not _URI.fullmatch(uri):
        raise ValueError(f"{uri!r} is not an absolute URI, such as 'file:///readme.md'")
    return uri


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
