"""Encrypts and authenticates stored data."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_KEY_BYTES: Final = 32
"""The minimum key length in bytes."""

_KEY_ID_BYTES: Final = 4
_NONCE_BYTES: Final = 12


class DecryptionError(Exception):
    """A ciphertext was modified, or was encrypted with another key or for another location."""


class Encryption:
    """Encrypts with the first key and decrypts with any key, so that keys can be rotated."""

    def __init__(self, keys: Sequence[bytes], purpose: str = "state") -> None:
        """Derive keys for a purpose, so that ciphertexts are invalid for other purposes.

        Raises:
            ValueError: There are no keys, or a key is too short.
        """
        if not keys or any(len(key) < MIN_KEY_BYTES for key in keys):
            raise ValueError(f"a key must have at least {MIN_KEY_BYTES} bytes")
        info = f"stubwright/{purpose}/v1".encode()
        derived = [HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(key) for key in keys]
        self._ciphers = {hashlib.sha256(key).digest()[:_KEY_ID_BYTES]: AESGCM(key) for key in derived}
        self._first = next(iter(self._ciphers))

    def encrypt(self, data: bytes, place: str) -> bytes:
        """Encrypt data and bind the ciphertext to a location."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._first + nonce + self._ciphers[self._first].encrypt(nonce, data, place.encode())

    def decrypt(self, ciphertext: bytes, place: str) -> bytes:
        """Decrypt a ciphertext that is bound to a location.

        Raises:
            DecryptionError: The key or location differs, or the data was modified.
        """
        cipher = self._ciphers.get(ciphertext[:_KEY_ID_BYTES])
        if cipher is None:
            raise DecryptionError("an unknown key")
        try:
            return cipher.decrypt(
                ciphertext[_KEY_ID_BYTES : _KEY_ID_BYTES + _NONCE_BYTES],
                ciphertext[_KEY_ID_BYTES + _NONCE_BYTES :],
                place.encode(),
            )
        except (InvalidTag, ValueError):  # a truncated nonce raises ValueError
            raise DecryptionError("authentication failed") from None
