"""Reads a document from a file, a URL or standard input.

Redirects are followed only to `https`, or from `http` to `http`. Messages show URLs without credentials.
"""

from __future__ import annotations

import sys
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from stubwright import http
from stubwright.importers.document_reader import DocumentError, SingleFileReader
from stubwright.importers.openapi.documents import Documents
from stubwright.project.files import disk
from stubwright_runtime.network.certificates import share_tls_context
from stubwright_runtime.network.errors import SettingError, check_proxies, describe, find_proxy

if TYPE_CHECKING:
    import httpx2

STANDARD_INPUT: Final = "-"
MAX_BYTES: Final = 64 << 20
"""The maximum download size in bytes; the largest public documents are about 10 MiB."""

TIMEOUT: Final = 60.0
"""The download time limit in seconds."""

_READING: Final = 15.0
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_ACCEPT: Final = "application/vnd.oai.openapi+json, application/json, application/yaml, text/yaml, */*;q=0.5"


def hide_credentials(source: str) -> str:
    """Return a source without its URL's credentials and query, for messages and files."""
    if not http.is_url(source):
        return source
    parts = http.split(source)
    if parts is None:
        return f"{source.partition(':')[0]}://…"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{'?…' if parts.query else ''}"


def read_documents(source: str) -> Documents:
    """Read a document from its source.

    Raises:
        DocumentError: The source cannot be read or is not a document that can be imported.
    """
    if source == STANDARD_INPUT:
        return Documents("standard-input", SingleFileReader("standard-input", _read_standard_input()), is_alone=True)
    if http.is_url(source):
        name = urlsplit(hide_credentials(source)).path.rstrip("/").rpartition("/")[2] or "document"
        return Documents(
            name,
            SingleFileReader(name, _fetch(source)),
            is_alone=True,
            origin=hide_credentials(source).partition("?")[0],
        )
    return Documents(source, disk.Disk())


def _read_standard_input() -> bytes:
    data = b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_BYTES + 1)  # None if the shell closed it
    if len(data) > MAX_BYTES:
        raise DocumentError(_explain_size())
    return data


def _explain_size() -> str:
    return f"it is larger than {MAX_BYTES >> 20} MiB"


def _fetch(url: str) -> bytes:
    """Return the body of a URL's response.

    Raises:
        DocumentError: The download fails or exceeds a limit.
    """
    import httpx2

    end = time.monotonic() + TIMEOUT
    try:
        check_proxies()
        with httpx2.Client(follow_redirects=False, timeout=_READING, verify=share_tls_context()) as client:
            for _ in range(_MOST_REDIRECTS + 1):
                with client.stream("GET", url, headers={"Accept": _ACCEPT}) as response:
                    target = response.headers.get("location")
                    if response.status_code in _MOVED and target is not None:
                        url = _follow_redirect(url, target)
                        continue
                    if response.status_code != HTTPStatus.OK:
                        raise DocumentError(f"it responded with HTTP {_describe_status(response.status_code)}")
                    return _read_limited(response, end)
    except SettingError as error:
        raise DocumentError(f"it cannot be fetched: {error}") from None
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise DocumentError("it cannot be fetched: the URL is invalid") from error
    except httpx2.HTTPError as error:
        name = type(error).__name__
        words = "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()
        why, what = describe(error, words, url=url), "the proxy" if find_proxy(url) else "the URL"
        advice = "" if "SSL_CERT_FILE" in why else f"; check {what}"
        raise DocumentError(f"it cannot be fetched: {why}{advice}") from error
    raise DocumentError("its redirects are circular")


def _follow_redirect(url: str, target: str) -> str:
    """Return a redirect's target URL.

    Raises:
        DocumentError: The target is not allowed.
    """
    try:
        location = urljoin(url, target)
        scheme = urlsplit(location).scheme
    except ValueError:
        raise DocumentError("it redirects to an invalid URL") from None
    if scheme not in ("http", "https") or (scheme == "http" and urlsplit(url).scheme == "https"):
        raise DocumentError(
            f"it redirects to {hide_credentials(location) if http.is_url(location) else 'another scheme'}, which is not"
            " followed"
        )
    return location


def _read_limited(response: httpx2.Response, end: float) -> bytes:
    data = bytearray()
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > MAX_BYTES:
            raise DocumentError(_explain_size())
        # The client's timeout applies only to single reads.
        if time.monotonic() > end:
            raise DocumentError(f"fetching it took longer than {TIMEOUT:g} s")
    return bytes(data)


def _describe_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
