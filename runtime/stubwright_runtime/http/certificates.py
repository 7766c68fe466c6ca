"""Client certificates for APIs that request one (RFC 8446, 4.4.2).

The files are read when the server starts, so that it reports a missing file before the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..network.certificates import make_tls_context
from ..observability.logs import log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


def make_context(name: str, settings: Mapping[str, Any], environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context of an API with a client certificate; None if the environment names none, as the log says.

    Args:
        name: What the manifest calls the API.
        settings: Its entry under `apis`.
        environment: Where the variables are.

    Raises:
        SettingError: The file that `SSL_CERT_FILE` names cannot be used.
        ValueError: A file cannot be used, the key is not named, or the API is not called by HTTPS; the message says
            which.
    """
    url = environment.get(settings.get("baseUrlEnv") or "") or settings.get("baseUrl", "")
    if urlsplit(str(url)).scheme != "https":
        raise ValueError(f"the API {name} has a client certificate, and its base URL is not HTTPS")
    certificate: Mapping[str, str] = settings["clientCertificate"]
    if not environment.get(certificate["certificateEnv"]):
        message = "%s is not set: the API %s is called without a client certificate"
        log().warning(message, certificate["certificateEnv"], name)
        return None
    values: dict[str, str] = {}
    for key in ("certificateEnv", "keyEnv", "passwordEnv"):
        if key in certificate:
            if not (value := environment.get(certificate[key])):
                raise ValueError(f"{certificate[key]} is not set, which the client certificate for {name} needs")
            values[key] = value
    context = make_tls_context()
    try:
        # A callable, since OpenSSL would ask at the terminal for a password that is not given.
        context.load_cert_chain(values["certificateEnv"], values.get("keyEnv"), lambda: values.get("passwordEnv", ""))
    except OSError as error:  # also for an invalid certificate, a wrong password, and a key of another certificate
        files = " and ".join(certificate[key] for key in ("certificateEnv", "keyEnv") if key in certificate)
        raise ValueError(
            f"the client certificate for {name} cannot be used ({files}): {error.strerror or error}"
        ) from None
    return context
