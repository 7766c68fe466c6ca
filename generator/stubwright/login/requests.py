"""Sends requests to authorization servers, with limits on time and size, and without redirects or cookies."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import anyio
import httpx2

from stubwright import http
from stubwright.login.errors import LoginError
from stubwright_runtime.http.tokens import LOOPBACK
from stubwright_runtime.network.clients import make_http_client
from stubwright_runtime.network.errors import SettingError, describe
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_SECONDS: Final = 20.0
_MOST_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `value` is empty if the body is not a JSON object."""

    status: int
    value: Mapping[str, Any] = field(repr=False)


@asynccontextmanager
async def open_client() -> AsyncIterator[httpx2.AsyncClient]:
    """Open a client for one login's requests. Raises LoginError if the environment has an invalid setting."""
    try:
        client = make_http_client(_SECONDS)
    except SettingError as error:
        raise LoginError(str(error)) from None
    async with client:
        yield client


async def fetch(client: httpx2.AsyncClient, url: str) -> Answer:
    """Send a GET request and return the response. Raises LoginError."""
    return await _send(client, client.build_request("GET", url, headers={"Accept": "application/json"}))


async def post_form(
    client: httpx2.AsyncClient, url: str, fields: Mapping[str, str], auth: httpx2.BasicAuth | None = None
) -> Answer:
    """Post a form, optionally with Basic credentials, and return the response. Raises LoginError."""
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    request = client.build_request("POST", url, headers=headers, content=urlencode(fields).encode())
    return await _send(client, request, auth)


async def post_json(client: httpx2.AsyncClient, url: str, value: Mapping[str, Any]) -> Answer:
    """Post a JSON object and return the response. Raises LoginError."""
    return await _send(client, client.build_request("POST", url, headers={"Accept": "application/json"}, json=value))


async def _send(client: httpx2.AsyncClient, request: httpx2.Request, auth: httpx2.BasicAuth | None = None) -> Answer:
    where = show(str(request.url))
    try:
        with anyio.fail_after(_SECONDS):
            response = await client.send(request, auth=auth, stream=True)
            try:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise LoginError(f"{where} sent more than {_MOST_BYTES // 1024} KiB")
            finally:
                await response.aclose()
    except TimeoutError:
        raise LoginError(f"{where} did not respond within {_SECONDS:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        why = describe(error, type(error).__name__, url=str(request.url))
        raise LoginError(f"{where} cannot be reached: {why}") from None
    return Answer(response.status_code, _parse(bytes(body)))


def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def show(url: str) -> str:
    """Return a URL for messages, on one line and without query, username and password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"`{to_one_line(f'{parts.scheme}://{host}{parts.path}')[:200]}`"


def check_url(url: object, what: str, server: str) -> str:
    """Return a URL if secrets may be sent to it: over https, or over http if it and the server are on this machine.

    Args:
        what: A description of the URL, for the message.
        server: The URL of the MCP server whose metadata contains `url`.

    Raises:
        LoginError: The URL is missing, or secrets cannot be sent to it.
    """
    if not isinstance(url, str) or not url:
        raise LoginError(f"the {what} is missing")
    if not http.is_token_url(url):
        raise LoginError(f"the {what} is not an https URL")
    # Otherwise, a remote server could trigger requests to any port on this machine.
    if urlsplit(url).hostname in LOOPBACK and urlsplit(server).hostname not in LOOPBACK:
        raise LoginError(f"the {what} is on this machine, although the server is not")
    return url
