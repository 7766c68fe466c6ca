"""Sends HTTP requests. The httpx2 client, which takes more CPU, is used only for proxies, authorization and cookies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import httpx2

from ...network.clients import make_direct_transport, make_http_client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

_SECONDS: Final = 30.0
"""The timeout for connecting and for sending a request, in seconds. The call's own timeout limits the response."""

_TIMEOUT: Final = httpx2.Timeout(_SECONDS, read=None)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request.

    Attributes:
        method: The HTTP method.
        url: The URL.
        headers: All headers, keyed by lowercase name.
        body: The body.
    """

    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    body: bytes = b""

    def to_httpx2(self, cookies: httpx2.Cookies | None = None) -> httpx2.Request:
        """Convert the request to an httpx2 request, with the cookies for its URL."""
        stream = httpx2.ByteStream(self.body)  # with `content`, httpx2 takes four times as long to create the headers
        request = httpx2.Request(self.method, self.url, headers=self.headers, cookies=cookies, stream=stream)
        request.read()
        return request

    def redirect(self, location: str) -> HttpRequest | None:
        """Return the request for a redirect URL, or `None` if the URL is invalid or has another origin."""
        try:
            url = self.url.join(location)
            is_same = (url.scheme, url.host, url.port) == (self.url.scheme, self.url.host, self.url.port)
        except (httpx2.InvalidURL, ValueError):  # ValueError for an invalid internationalized host
            return None
        return HttpRequest(self.method, url, self.headers, self.body) if is_same else None


class Reply:
    """A response whose body is read in chunks. Exiting the `async with` block releases the connection.

    Attributes:
        status: The status.
        headers: The headers, keyed by lowercase name.
        read: Returns the next chunk of the decoded body; empty at the end. Raises httpx2.RequestError.
    """

    __slots__ = ("_close", "headers", "read", "status")

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        read: Callable[[], Awaitable[bytes]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        """Create a response from the functions that read the body and release the connection."""
        self.status = status
        self.headers = headers
        self.read = read
        self._close = close

    @classmethod
    def wrap(cls, response: httpx2.Response) -> Reply:
        """Create a response from an httpx2 response."""
        pieces = response.aiter_bytes()
        headers = dict(response.headers.items())
        return cls(response.status_code, headers, lambda: anext(pieces, b""), response.aclose)

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return 200 <= self.status < 300

    async def __aenter__(self) -> Self:
        """Return the response."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Release the connection."""
        await self._close()


class HttpClient:
    """Sends requests over persistent connections, using the certificates and proxies from the environment."""

    def __init__(self, headers: Mapping[str, str], auth: httpx2.Auth | None) -> None:
        """Create a client.

        Args:
            headers: Headers for every request.
            auth: Authorizes every request.

        Raises:
            SettingError: The environment's proxy or certificates cannot be used.
        """
        direct = make_direct_transport()
        self._client = make_http_client(_TIMEOUT, transport=direct, headers=dict(headers), auth=auth)
        self._direct = None if auth is not None else direct
        self.headers = dict(self._client.headers.items())

    async def send(self, request: HttpRequest) -> Reply:
        """Send a request and return the response once the headers have arrived.

        Raises:
            httpx2.RequestError: The server sends no response.
            Exception: Any exception from the authorization.
        """
        cookies = self._client.cookies
        if self._direct is None or cookies:
            return Reply.wrap(await self._client.send(request.to_httpx2(cookies), stream=True))
        body = await self._direct.send(request.method, request.url, request.headers, request.body, _SECONDS)
        headers, status = body.headers, body.connection.status
        if "set-cookie" in headers or "content-encoding" in headers:
            raw = body.connection.headers
            response = httpx2.Response(status, headers=raw, stream=body, request=request.to_httpx2())
            cookies.extract_cookies(response)
            return Reply.wrap(response)
        return Reply(status, headers, body.read, body.aclose)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()
