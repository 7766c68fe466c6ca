"""A live server's address: a command or a URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.login.authorization import Authorization


@dataclass(frozen=True, slots=True)
class Command:
    """A stdio server: its command, and environment variables in addition to the default ones."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """The server's name in messages."""
        return to_one_line(self.words[0])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Streamable HTTP server: its URL, headers for each request, and its token source."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: Authorization | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The server's name in messages, without user, password and query, which may be secret."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        port = f":{parts.port}" if parts.port else ""
        return to_one_line(f"{parts.scheme}://{host}{port}{parts.path}")


Source: TypeAlias = Command | Endpoint
