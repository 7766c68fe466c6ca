"""The variables that npx, uvx and their kind need to fetch a server: proxies, certificates, registries.

Takes an environment; gives the part of it that each command gets which the command line starts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NEEDED: Final = re.compile(
    r"SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|(?i:(?:ALL|HTTPS?|NO)_PROXY)"
    r"|PIP_.+|UV_(?!PUBLISH_).+|(?i:npm_config_).+"  # what publishes packages is for no server
)


def select_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that package runners need."""
    return {name: value for name, value in environment.items() if _NEEDED.fullmatch(name)}
