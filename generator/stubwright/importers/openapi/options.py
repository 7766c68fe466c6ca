"""Import options that apply to all operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from stubwright import http
from stubwright.importers.openapi.naming import SelectionError

AUTH: Final = "bearer, basic, apiKey=HEADER, apiKey=query:NAME, apiKey=cookie:NAME or clientCredentials=TOKEN_URL"
"""The syntax that `Auth.parse` accepts."""


@dataclass(frozen=True, slots=True)
class Auth:
    """The server's authentication, which replaces the document's.

    Attributes:
        kind: `bearer`, `basic`, `apiKey` or `clientCredentials`.
        where: With `apiKey`: `header`, `query` or `cookie`.
        detail: With `apiKey`, the key's name; with `clientCredentials`, the token endpoint's URL.
    """

    kind: str
    where: str = "header"
    detail: str = ""

    @classmethod
    def parse(cls, text: str) -> Auth:
        """Parse the value of `--auth`.

        Raises:
            SelectionError: The syntax is invalid.
        """
        kind, _, detail = text.partition("=")
        where, colon, name = detail.partition(":")
        if kind in ("bearer", "basic") and kind == text:
            return cls(kind)
        if kind == "apiKey" and not colon and http.is_key_header(detail):
            return cls(kind, "header", detail)
        if kind == "apiKey" and name and where in ("query", "cookie"):
            return cls(kind, where, name)
        if kind == "clientCredentials" and http.is_token_url(detail):
            return cls(kind, detail=detail)
        raise SelectionError(f"--auth `{text}` is invalid; use {AUTH}")


@dataclass(frozen=True, slots=True)
class Options:
    """Options for importing an OpenAPI document.

    Attributes:
        media_types: Preferred media types, best first.
        output_schemas: True if tools get an `outputSchema`.
        server: The selected server: its number (from 1), URL or description.
        longest: The maximum length of descriptions, if any.
        auth: Replaces the document's authentication.
        pages: True to detect pagination.
    """

    media_types: Sequence[str] = ()
    output_schemas: bool = True
    server: str | None = None
    longest: int | None = None
    auth: Auth | None = None
    pages: bool = False
