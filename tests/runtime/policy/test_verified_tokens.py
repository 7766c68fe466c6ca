"""Access tokens whose signature was verified before."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import anyio
import jwt
import pytest
from jwt import PyJWK

from signing import Key, claims
from stubwright_runtime.policy import tokens
from stubwright_runtime.policy.keys import Keys

ISSUER, AUDIENCE = "https://auth.example.com", "https://mcp.example.com"
AUTH = {"issuer": ISSUER, "audience": AUDIENCE}

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Given(Keys):
    """A set of keys; another set simulates a new request to the issuer."""

    def __init__(self, *keys: Key) -> None:
        super().__init__(ISSUER)
        self.give(*keys)

    def give(self, *keys: Key) -> None:
        self.found: dict[str | None, PyJWK] = {key.kid: PyJWK(key.jwk(), "RS256") for key in keys}

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        return None if kid is None else self.found.get(kid)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens whose signature was verified."""
    seen: list[str] = []
    decode = jwt.decode

    def counting(token: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        seen.append(token)
        found: dict[str, Any] = decode(token, *arguments, **more)
        return found

    monkeypatch.setattr(jwt, "decode", counting)
    return seen


def said(**more: Any) -> Mapping[str, Any]:
    return {**claims(ISSUER, AUDIENCE), **more}


async def test_a_token_is_verified_once(decoded: list[str]) -> None:
    key = Key("one")
    verifier = tokens.Tokens(AUTH, Given(key))
    token, other = key.sign(said(scope="a")), key.sign(said(scope="b"))
    first = await verifier.verify_token(token)
    assert first is not None
    assert isinstance(first.claims, dict)
    first.claims["sub"] = "somebody else"
    again, others = await verifier.verify_token(token), await verifier.verify_token(other)
    assert again is not None
    assert others is not None
    assert (again.scopes, again.claims and again.claims["sub"], others.scopes) == (["a"], "alice", ["b"])
    assert await verifier.verify_token(token[:-4] + "AAAA") is None
    assert decoded == [token, other, token[:-4] + "AAAA"]


async def test_it_expires_all_the_same(decoded: list[str]) -> None:
    key = Key("one")
    verifier = tokens.Tokens(AUTH, Given(key))
    token = key.sign(said(exp=int(time.time() - tokens.SKEW) + 2))
    assert await verifier.verify_token(token) is not None
    await anyio.sleep(2)
    assert await verifier.verify_token(token) is None


async def test_its_key_has_to_be_there_still(decoded: list[str]) -> None:
    key, same_name = Key("one"), Key("one")
    keys = Given(key)
    verifier = tokens.Tokens(AUTH, keys)
    token = key.sign(said())
    assert await verifier.verify_token(token) is not None
    keys.give()
    assert await verifier.verify_token(token) is None
    keys.give(same_name)
    assert await verifier.verify_token(token) is None
    keys.give(key)
    assert await verifier.verify_token(token) is not None
    assert decoded == [token] * 3  # verification is impossible without a key


async def test_so_many_are_kept(decoded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_VERIFIED", 2)
    key = Key("one")
    verifier = tokens.Tokens(AUTH, Given(key))
    one, two, three = (key.sign(said(sub=name)) for name in ("ann", "bob", "cat"))
    for token in (one, two, one, three, one, two):
        assert await verifier.verify_token(token) is not None
    assert decoded == [one, two, three, two]
