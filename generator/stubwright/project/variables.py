"""Lists the environment variables in a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind: TypeAlias = Literal["address", "part", "credential", "argument"]
"""The kind of a variable: an API's URL, a part of that URL, a credential, or a tool argument."""

_LOGIN: Final = {
    "usernameEnv": ("user name", False),
    "passwordEnv": ("password", True),
    "clientIdEnv": ("client id", False),
    "clientSecretEnv": ("client secret", True),
    "refreshTokenEnv": ("refresh token", True),
}


_CERTIFICATE: Final = {
    "certificateEnv": ("client certificate file", False),
    "keyEnv": ("client key file", False),
    "passwordEnv": ("client key password", True),
}


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable.

    Attributes:
        name: The variable's name.
        kind: The kind of the value.
        what: The name of the URL part, credential or argument; empty if the variable contains the whole URL.
        owner: The name of the API or tool that uses the variable.
        is_secret: True if its value is secret.
        default: The default value; None if the variable must be set.
    """

    name: str
    kind: Kind
    what: str
    owner: str
    is_secret: bool = False
    default: str | None = None

    @property
    def description(self) -> str:
        """A description of the variable."""
        match self.kind:
            case "address":
                return f"The address of {self.owner}"
            case "part":
                return f"{self.what} in the address of {self.owner}"
            case "credential":
                return f"The {self.what} for {self.owner}"
            case "argument":
                return f"{self.what} of {self.owner}"


def list_variables(document: Mapping[str, Any]) -> tuple[Variable, ...]:
    """Return a server's environment variables, without duplicates.

    Args:
        document: The resolved manifest.
    """
    variables: dict[str, Variable] = {}
    for variable in (*_list_of_apis(document.get("apis") or {}), *_list_bound(document.get("tools") or ())):
        variables.setdefault(variable.name, variable)
    return tuple(variables.values())


def _list_of_apis(apis: Mapping[str, Any]) -> Iterator[Variable]:
    for name, api in apis.items():
        if "baseUrlEnv" in api:
            yield Variable(api["baseUrlEnv"], "address", "", name, default=api.get("baseUrl"))
        for part, variable in (api.get("variables") or {}).items():
            yield Variable(variable["env"], "part", part, name, default=variable["default"])
        for key, (what, is_secret) in _CERTIFICATE.items():
            if key in (api.get("clientCertificate") or {}):
                yield Variable(api["clientCertificate"][key], "credential", what, name, is_secret)
        for auth in (api.get("auth") or {}).values():
            if "env" in auth:
                what = "token" if auth["type"] in ("bearer", "oauth2") else "key"
                yield Variable(auth["env"], "credential", what, name, is_secret=True)
            for key, (what, is_secret) in _LOGIN.items():
                if key in auth:
                    yield Variable(auth[key], "credential", what, name, is_secret)


def _list_bound(tools: Any) -> Iterator[Variable]:
    for tool in tools:
        for argument, binding in ((tool.get("stubwright") or {}).get("bind") or {}).items():
            if "local" in binding:
                yield Variable(binding["local"]["env"], "argument", argument, tool["name"])
