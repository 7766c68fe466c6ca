"""Loads client certificates for APIs (RFC 8446, 4.4.2) when the server starts, to report missing files early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..network.certificates import make_tls_context
from ..observability.logs import log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


def make_context(name: str, settings: Mapping[str, Any], environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context for an API's client certificate.

    If the certificate is not set, log a warning and return `None`.

    Args:
        name: The API's name in the manifest.
        settings: The API's entry under `apis`.
        environment: The environment variables.

    Raises:
        SettingError: The `SSL_CERT_FILE` file is invalid.
        ValueError: The certificate or key is invalid, the key is not set, or the base URL is not HTTPS.
    """
    url = environment.get(settings.get("baseUrlEnv") or "") or settings.get("baseUrl", "")
    if urlsplit(str(url)).scheme != "https":
        raise ValueError(f"the API {name} has a client certificate, but its base URL is not HTTPS")
    certificate: Mapping[str, str] = settings["clientCertificate"]
    if not environment.get(certificate["certificateEnv"]):
        message = "%s is not set: the API %s is called without a client certificate"
        log().warning(message, certificate["certificateEnv"], name)
        return None
    values: dict[str, str] = {}
    for key in ("certificateEnv", "keyEnv", "passwordEnv"):
        if key in certificate:
            if not (value := environment.get(certificate[key])):
                raise ValueError(f"the client certificate for {name} requires {certificate[key]}, which is not set")
            values[key] = value
    context = make_tls_context()
    try:
        # OpenSSL would prompt for the password on the terminal if this were not a callable.
        context.load_cert_chain(values["certificateEnv"], values.get("keyEnv"), lambda: values.get("passwordEnv", ""))
    except OSError as error:  # also raised for invalid certificates, wrong passwords, and mismatched keys
        files = " and ".join(certificate[key] for key in ("certificateEnv", "keyEnv") if key in certificate)
        raise ValueError(
            f"the client certificate for {name} cannot be used ({files}): {error.strerror or error}"
        ) from None
    return context
