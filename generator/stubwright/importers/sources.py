"""The source of a live server: a command that starts it, or a URL. This module loads no client, and calls no server."""

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
    """A server on standard input and output: the command that starts it, and variables next to the few it gets."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """The name of the server for people."""
        return to_one_line(self.words[0])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server over Streamable HTTP: its URL, headers for each request, and the source of its access tokens."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: Authorization | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The name of the server for people, without parts that may be secret: user, password, query."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        port = f":{parts.port}" if parts.port else ""
        return to_one_line(f"{parts.scheme}://{host}{port}{parts.path}")


Source: TypeAlias = Command | Endpoint
