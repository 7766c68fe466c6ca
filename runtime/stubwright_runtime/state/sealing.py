"""Seals state that clients store for the server: encrypts and authenticates it, and binds it to its call.

The module `nonces` prevents replays.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from .encryption import DecryptionError, Encryption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PURPOSE: Final = "request-state"
_BINDING: Final = Struct(">d32s32s32s")
"""A state's header: its expiry, and digests of its server, caller and call."""

_BOUND: Final = ("arguments", "name", "uri")
"""Parameters that must not change between a call's rounds."""

_SKEW: Final = 60.0
"""The allowed clock skew between processes, in seconds."""


class InvalidStateError(Exception):
    """A token is invalid. The message is the reason, which is only for the log and contains no part of the token."""


@dataclass(frozen=True, slots=True)
class Call:
    """The call that a state is bound to.

    Attributes:
        method: The method, such as `tools/call`.
        params: The parameters. Unknown parameters, and parameters that change between rounds, are ignored.
        caller: A unique ID for the caller.
    """

    method: str
    params: Mapping[str, Any]
    caller: str

    def compute_digest(self) -> bytes:
        """Return a digest of the method and the bound parameters. A missing parameter equals an empty one."""
        bound = {key: self.params[key] for key in _BOUND if self.params.get(key)}
        return _digest(json.dumps([self.method, bound], sort_keys=True))


class StateSealer:
    """Seals one server's states (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests")."""

    def __init__(self, keys: Sequence[bytes], server: str, seconds: float, purpose: str = _PURPOSE) -> None:
        """Create a sealer.

        Args:
            keys: The keys. The first one seals, and any key opens.
            server: The server's name.
            seconds: The lifetime of a state, in seconds.
            purpose: The tokens' purpose; a token is invalid for any other purpose.

        Raises:
            ValueError: There are no keys, or a key is too short.
        """
        self._encryption = Encryption(keys, purpose)
        self._server = server
        self._seconds = seconds

    def seal(self, state: str, call: Call, now: float) -> str:
        """Return a token for a call's state; `now` is in seconds since 1970."""
        binding = _BINDING.pack(now + self._seconds, _digest(self._server), _digest(call.caller), call.compute_digest())
        # A handler's cursor can contain a lone surrogate, which plain UTF-8 cannot encode.
        return _encode(self._encryption.encrypt(binding + state.encode("utf-8", "surrogatepass"), ""))

    def open(self, token: object, call: Call, now: float) -> str:
        """Return the state in a token.

        Raises:
            InvalidStateError: The token belongs to another server, call or caller, or has expired.
        """
        if (ciphertext := _decode(token)) is None:
            raise InvalidStateError("it is malformed")
        try:
            data = self._encryption.decrypt(ciphertext, "")
        except DecryptionError as error:
            raise InvalidStateError(str(error)) from None
        expiry, server, caller, digest = _BINDING.unpack_from(data)
        if now >= expiry:
            raise InvalidStateError("it has expired")
        # Otherwise a clock that is wrong for a moment could create a token that is valid for years.
        if now + self._seconds + _SKEW < expiry:
            raise InvalidStateError("it expires too late: the clock was set back, or another process has a fast clock")
        if server != _digest(self._server):
            raise InvalidStateError("it belongs to another server")
        if caller != _digest(call.caller):
            raise InvalidStateError("it belongs to another caller")
        if digest != call.compute_digest():
            raise InvalidStateError("it belongs to another call")
        return data[_BINDING.size :].decode("utf-8", "surrogatepass")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(token: object) -> bytes | None:
    if not isinstance(token, str):
        return None
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return None
    return data if _encode(data) == token else None
