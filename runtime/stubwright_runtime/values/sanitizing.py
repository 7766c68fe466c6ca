"""Sanitizes text, and checks URIs, base64 and MIME types."""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .text import replace_surrogates

# C0 except tab, line feed and carriage return; DEL; C1; bidirectional embeddings, overrides and isolates.
_UNSAFE: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_SUSPECT: Final = re.compile(f"[{_UNSAFE}\ud800-\udfff]")
_REMOVED: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences (ECMA-48, 5.4): colours, cursor movements
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # strings (8.3): titles, hyperlinks
    r"|\x1b[ -/]*[0-~]"  # other escape sequences
    f"|[{_UNSAFE}]"
)
UNSAFE: Final = re.compile(f"[{_UNSAFE}]")
"""A character that `clean` removes."""


SanitizeMode: TypeAlias = Literal["text", "all", "none"]
"""The sanitize mode: the manifest's `policy.sanitize`."""

DEFAULT_SANITIZE_MODE: Final[SanitizeMode] = "text"
"""The default mode."""


@dataclass(slots=True)
class SanitizeStats:
    """Counts of sanitized strings and removed characters.

    Attributes:
        strings: The number of changed strings.
        characters: The number of removed characters.
    """

    strings: int = 0
    characters: int = 0


def clean(text: str, count: SanitizeStats | None = None) -> str:
    """Remove control characters, escape sequences and bidirectional overrides, and replace lone surrogates.

    Args:
        text: The text to clean.
        count: Updated with the number of removed characters.
    """
    if is_clean(text):
        return text
    whole_text = replace_surrogates(text)
    cleaned = _REMOVED.sub("", whole_text)
    if count is not None and cleaned != text:
        count.strings += 1
        count.characters += len(whole_text) - len(cleaned)
    return cleaned


def is_clean(text: str) -> bool:
    """Return whether `clean` would return the text unchanged."""
    return _SUSPECT.search(text) is None


def sanitize_text(text: str, sanitize_mode: SanitizeMode, count: SanitizeStats | None = None) -> str:
    """Sanitize a handler's text according to the policy."""
    return replace_surrogates(text) if sanitize_mode == "none" else clean(text, count)


_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # RFC 9110, 5.6.2, "token"
_MIME_TYPE: Final = re.compile(rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"[^"\\\x00-\x1f\x7f]*"))*')


_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f\x7f]*")  # RFC 3986, 3: a scheme, and no whitespace


def check_uri(uri: str) -> str:
    """Return `uri` if it is an absolute URI (RFC 3986, 4.3, with letters from all scripts).

    Raises:
        ValueError: `uri` is not an absolute URI.
    """
    if not _URI.fullmatch(uri):
        raise ValueError(f"{uri!r} is not an absolute URI, such as 'file:///readme.md'")
    return uri


def check_mime_type(mime_type: str, kind: str | None = None) -> str:
    """Return `mime_type` if it is a MIME type (RFC 9110, 8.3.1) and, with `kind`, has that top-level type.

    Raises:
        ValueError: `mime_type` is not such a MIME type.
    """
    if not _MIME_TYPE.fullmatch(mime_type):
        raise ValueError(f"{mime_type!r} is not a MIME type")
    if kind is not None and not mime_type.lower().startswith(f"{kind}/"):
        raise ValueError(f"{mime_type!r} is not a MIME type for an {kind} block, which must start with {kind}/")
    return mime_type


def check_base64(data: str) -> str:
    """Return `data` if it is base64 (RFC 4648, section 4).

    Raises:
        ValueError: `data` is not base64.
    """
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:
        raise ValueError(f"the data is not base64: {error}") from None
    return data
