"""Describes why a connection to a host failed."""

from __future__ import annotations

import socket
import ssl
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ..values.json import is_group

if TYPE_CHECKING:
    from collections.abc import Iterator


_UNTRUSTED: Final = (2, 18, 19, 20, 21)
"""OpenSSL's error codes (`X509_V_ERR_…`) for certificates from an untrusted issuer."""

_PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")


class SettingError(OSError):
    """A network setting in the environment is invalid, so that no HTTP client can be created."""


def check_proxies() -> bool:
    """Check the proxy settings in the environment. HTTP clients read them at creation.

    Returns:
        True if any proxy is set.

    Raises:
        SettingError: A proxy is not a URL, its scheme is unsupported, or its package is missing.
    """
    proxies = getproxies()
    given = {kind: proxies[kind] for kind in ("http", "https", "all") if proxies.get(kind)}
    for kind, proxy in given.items():
        shown = _show_proxy(proxy)
        if shown is None:  # not shown, because it may contain a password
            raise SettingError(f"the proxy in the environment variable {kind}_proxy is not a URL")
        scheme = shown.partition(":")[0]
        if scheme not in _PROXY_SCHEMES:
            raise SettingError(f"the proxy {shown} in the environment is not one of {', '.join(_PROXY_SCHEMES)}")
        if scheme.startswith("socks") and find_spec("socksio") is None:
            raise SettingError(f"the proxy {shown} in the environment requires `pip install 'httpx2[socks]'`")
    return bool(given)


def describe(error: BaseException, otherwise: str | None = None, *, url: str | None = None) -> str:
    """Describe why a connection failed, preferably by the system error that caused it.

    Args:
        error: An error from `httpx2`, `anyio` or the system.
        otherwise: The text if no system error is the cause; by default, the error's own text.
        url: The requested URL; if given, the text also names the proxy and suggests `SSL_CERT_FILE` where they apply.
    """
    reason = _find_reason(error, otherwise)
    if url is None:
        return reason
    if any(getattr(cause, "verify_code", None) in _UNTRUSTED for cause in _causes(error)):
        reason += "; set SSL_CERT_FILE to a file with its authority"
    proxy = find_proxy(url)
    return reason if proxy is None else f"through the proxy {proxy}: {reason}"


def find_proxy(url: str) -> str | None:
    """Return the proxy for a URL from the environment, without its password, or `None` without a proxy."""
    proxies = getproxies()
    try:
        target = urlsplit(url)
        proxy = proxies.get(target.scheme) or proxies.get("all")
        if not proxy or proxy_bypass(target.netloc.rpartition("@")[2]):
            return None
    except ValueError:  # the URL is invalid
        return None
    return _show_proxy(proxy)


def _show_proxy(proxy: str) -> str | None:
    """Return a proxy URL without its password, or `None` if the URL is invalid."""
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        _ = parts.port  # raises ValueError if the port is not a number
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _find_reason(error: BaseException, otherwise: str | None) -> str:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not valid: {cause.verify_message.rstrip('.')}"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed: {cause.reason or cause}"
        if isinstance(cause, socket.gaierror):
            return "unknown host"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, ConnectionResetError | BrokenPipeError):
            return "the server closed the connection"
        if isinstance(cause, OSError) and cause.errno and cause.strerror:
            return cause.strerror[:1].lower() + cause.strerror[1:]
    return otherwise or str(error) or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, innermost last. An exception group is represented by its first error."""
    seen: set[int] = set()
    now: BaseException | None = error
    while now is not None and id(now) not in seen:
        seen.add(id(now))
        yield now
        now = now.exceptions[0] if is_group(now) else now.__cause__ or now.__context__
