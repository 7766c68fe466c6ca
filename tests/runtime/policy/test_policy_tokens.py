"""Access tokens: validation, sources of keys, and the cost of invalid tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

import amounts
from signing import Key, claims, raw
from stubwright_runtime.observability import logs
from stubwright_runtime.policy.keys import Keys
from stubwright_runtime.policy.tokens import SKEW, Tokens
from stubwright_runtime.server.core.principal import VerificationUnavailableError

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


ISSUER = "https://auth.example.com"
HERE = "https://mcp.example.com/mcp"
AUTH = {"issuer": ISSUER, "audience": HERE}

ONE, TWO = Key("one"), Key("two")
CURVE = Key("curve", "ES256", partial(ec.generate_private_key, ec.SECP256R1()))
EDWARDS = Key("edwards", "EdDSA", ed25519.Ed25519PrivateKey.generate)

Answer = httpx2.Response | Exception
METADATA = "/.well-known/oauth-authorization-server"


@dataclass
class Issuer:
    """An authorization server without a network: answers by path, and the paths that it was asked for."""

    answers: dict[str, Answer | Callable[[], Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    wait: float = 0
    gate: anyio.Event | None = None
    """It answers once this is set."""

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request.url.path)
        await anyio.sleep(self.wait)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.get(request.url.path, httpx2.Response(404))
        answer = answer() if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    def have(self, *keys: Key | Mapping[str, Any], metadata: str = METADATA, issuer: str = ISSUER) -> None:
        """Publish metadata and keys."""
        said = {"issuer": issuer, "jwks_uri": f"{ISSUER}/jwks"}
        self.answers[metadata] = lambda: httpx2.Response(200, json=said)
        published = [key.jwk() if isinstance(key, Key) else dict(key) for key in keys]
        self.answers["/jwks"] = lambda: httpx2.Response(200, json={"keys": published})

    def keys(self, pause: float = 0.0, issuer: str = ISSUER, jwks_uri: str | None = None, **more: float) -> Keys:
        return Keys(issuer, jwks_uri, pause=pause, transport=httpx2.MockTransport(self), **more)

    def tokens(self, **more: Any) -> Tokens:
        return Tokens(AUTH, self.keys(**more))


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    found = Issuer()
    found.have(ONE, CURVE, EDWARDS)
    return found


class Clock:
    """The clock for the expiry of keys, which only the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("stubwright_runtime.policy.keys.time", found)
    return found


def _good(**more: Any) -> dict[str, Any]:
    return claims(ISSUER, HERE, **more)


@pytest.mark.parametrize("key", [ONE, CURVE, EDWARDS], ids=lambda key: key.algorithm)
@pytest.mark.parametrize("kind", ["at+jwt", "application/at+jwt", "JWT", "AT+JWT"])
async def test_a_good_token_is_taken(issuer: Issuer, key: Key, kind: str) -> None:
    found = await issuer.tokens().verify_token(key.sign(_good(scope="read write"), typ=kind))
    assert found is not None
    assert (found.subject, found.client_id, found.scopes) == ("alice", "machine", ["read", "write"])
    assert found.token == ""
    assert found.claims is not None
    assert found.claims["iss"] == ISSUER


BLANKS = [blank for blank in map(chr, range(0x3001)) if blank.isspace() and blank != " "]
"""Python's white space up to U+3000, except the space, the only separator of scopes (RFC 6749, 3.3)."""


@pytest.mark.parametrize(
    ("said", "scopes"),
    amounts.sample(
        [
            ({"scope": "a b"}, ["a", "b"]),
            ({"scope": None}, []),
            ({"scope": None, "scp": "a b"}, ["a", "b"]),
            ({"scope": None, "scp": ["a", "b", 1]}, ["a", "b"]),
            ({"scope": ["a"]}, ["a"]),
            ({"scope": 1}, []),
            ({"scope": "", "scp": "a"}, []),
            ({"scope": "  a  b "}, ["a", "b"]),
            *(({"scope": f"a{blank}b c"}, [f"a{blank}b", "c"]) for blank in BLANKS),
            *(({"scope": None, "scp": f"a{blank}b"}, [f"a{blank}b"]) for blank in BLANKS),
        ],
        24,
    ),
)
async def test_scopes_are_read_as_issuers_write_them(issuer: Issuer, said: dict[str, Any], scopes: list[str]) -> None:
    found = await issuer.tokens().verify_token(ONE.sign(_good(**said)))
    assert found is not None
    assert found.scopes == scopes


THIRD = Key("third")
NOW = int(time.time())
DAY = 86_400
SMALL = Key("small", make=partial(rsa.generate_private_key, 65537, 1024))
HEADER = {"alg": "RS256", "typ": "at+jwt", "kid": "one"}

KEYCLOAK = ("Refresh", "ID", "Offline", "Logout", "RegistrationAccessToken", "verify-email", 1)

REFUSED: dict[str, str | Callable[[], str]] = {
    "wrong audience": ONE.sign(_good(aud="https://other.example.com/mcp")),
    "no audience": ONE.sign(_good(aud=None)),
    "an audience that begins alike": ONE.sign(_good(aud=f"{HERE}/more")),
    "wrong issuer": ONE.sign(_good(iss="https://auth.example.net")),
    "issuer with a slash": ONE.sign(_good(iss=f"{ISSUER}/")),
    "no issuer": ONE.sign(_good(iss=None)),
    "expired": ONE.sign(_good(exp=NOW - int(SKEW) - 5)),
    "never expires": ONE.sign(_good(exp=None)),
    "expiry is no number": ONE.sign(_good(exp="soon")),
    **{
        f"{name} is {'a text' if isinstance(value, str) else str(value)[:9]}": ONE.sign(_good(**{name: value}))
        for name, value in product(
            ("exp", "nbf", "iat"), (10**400, -(10**400), 1e300, math.inf, math.nan, -1, True, [], {}, f"{NOW + DAY}")
        )
    },
    "not yet valid": ONE.sign(_good(nbf=NOW + DAY, exp=NOW + 2 * DAY)),
    "issued tomorrow": ONE.sign(_good(iat=NOW + DAY, exp=NOW + 2 * DAY)),
    "alg none": raw({**HEADER, "alg": "none"}, _good()),
    "alg None, as some write it": raw({**HEADER, "alg": "nOnE"}, _good()),
    "no alg": raw({"typ": "at+jwt", "kid": "one"}, _good()),
    "alg is a list": raw({**HEADER, "alg": ["RS256"]}, _good()),
    "HMAC with the public key": "",
    "unknown kid": lambda: TWO.sign(_good()),
    "kid of another key": lambda: TWO.sign(_good(), kid="one"),
    "kid of a key of another kind": ONE.sign(_good(), kid="curve"),
    "kid is a list": raw({**HEADER, "kid": ["one"]}, _good()),
    "kid is a path": ONE.sign(_good(), kid="../../jwks"),
    "no kid where there are several keys of a kind": "",
    "a key that it brings": lambda: raw({**HEADER, "jwk": TWO.jwk()}, _good(), b"x" * 256),
    "a critical extension": ONE.sign(_good(), crit=["exp2"], exp2=1),
    "a payload that is elsewhere": raw({**HEADER, "b64": False, "crit": ["b64"]}, {}),
    "another type": ONE.sign(_good(), typ="logout+jwt"),
    "type is null": raw({**HEADER, "typ": None}, _good()),
    "ID token": ONE.sign(_good(nonce="n", at_hash="h", scope=None), typ="JWT"),
    "ID token without a type": ONE.sign(_good(c_hash="h"), typ=None),
    "logout token": ONE.sign(_good(events={}), typ="JWT"),
    **{f"typ {kind!r} of Keycloak": ONE.sign(_good(typ=kind), typ="JWT") for kind in KEYCLOAK},
    "ID token of Cognito": ONE.sign(_good(token_use="id"), typ=None),
    "refresh token of a library": ONE.sign(_good(token_type="refresh"), typ="JWT"),
    "refresh token of ForgeRock": ONE.sign(_good(tokenName="refresh_token"), typ="JWT"),
    "a slash more": ONE.sign(_good(aud=f"{HERE}/")),
    "a path in capitals": ONE.sign(_good(aud="https://mcp.example.com/MCP")),
    "another scheme": ONE.sign(_good(aud="http://mcp.example.com/mcp")),
    "another port": ONE.sign(_good(aud="https://mcp.example.com:8443/mcp")),
    "an audience that is no text": ONE.sign(_good(aud=[HERE, 1])),
    "no audience in the list": ONE.sign(_good(aud=[])),
    "nobody's": ONE.sign(_good(sub=None, client_id=None)),
    "subject is a number": ONE.sign(_good(sub=7, client_id=None)),
    "signature of other claims": "",
    "signature cut off": ONE.sign(_good()).rpartition(".")[0] + ".",
    "header nested deeply": f"{'W1tb' * 3000}.e30.e30",
    "claims are a list": "",
    "three parts of nothing": "..",
    "empty": "",
    "one word": "garbage",
    "not ASCII": "e\u00e9.e30.e30",
    "very long": ONE.sign(_good(more="x" * 20_000)),
}


def _hmac() -> str:
    header = {"alg": "HS256", "typ": "at+jwt", "kid": "one"}
    signed = raw(header, _good()).rpartition(".")[0]
    made = hmac.new(ONE.pem, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


def _swapped() -> str:
    head, _, signature = ONE.sign(_good()).split(".")
    return f"{head}.{ONE.sign(_good(scope='admin')).split('.')[1]}.{signature}"


REFUSED["HMAC with the public key"] = _hmac()
REFUSED["signature of other claims"] = _swapped()
REFUSED["claims are a list"] = jwt.api_jws.encode(b"[1]", ONE.private, "RS256", HEADER)
REFUSED["no kid where there are several keys of a kind"] = Key(None, make=lambda: ONE.private).sign(_good())


@pytest.mark.parametrize("token", REFUSED.values(), ids=REFUSED)
async def test_a_bad_token_is_refused(token: str | Callable[[], str], caplog: pytest.LogCaptureFixture) -> None:
    token = token if isinstance(token, str) else token()
    found = Issuer()
    found.have(ONE, CURVE, EDWARDS, THIRD)
    with caplog.at_level(logging.DEBUG):
        assert await found.tokens().verify_token(token) is None
    assert "tokens refused: 1; the last: " in caplog.text
    assert all(len(record.getMessage()) < 400 for record in caplog.records if record.name.startswith("stubwright"))
    assert not token or token.strip(".") not in caplog.text or token == ".."


ROOTS = (
    "https://mcp.example.com",
    "https://mcp.example.com/",
    "HTTPS://MCP.Example.COM",
    "https://mcp.example.com:443/",
)


@pytest.mark.parametrize(
    ("audience", "named"),
    [
        *product(ROOTS, ROOTS),
        (HERE, "https://MCP.example.com/mcp"),
        (f"{HERE}?a=B", "https://MCP.example.com:443/mcp?a=B"),
        ("https://mcp.example.com?a", "https://mcp.example.com/?a"),
        ("http://[::1]:80", "http://[::1]/"),
        ("api://notes", "api://notes"),
    ],
)
async def test_equivalent_urls_are_one_audience(issuer: Issuer, audience: str, named: str) -> None:
    tokens = Tokens({**AUTH, "audience": audience}, issuer.keys())
    assert await tokens.verify_token(ONE.sign(_good(aud=named))) is not None
    assert await tokens.verify_token(ONE.sign(_good(aud=["account", named]))) is not None


@pytest.mark.parametrize(
    ("audience", "named"), [("api://notes", "api://Notes"), (ROOTS[0], "https://mcp.example.com//")]
)
async def test_other_names_are_compared_as_they_are(issuer: Issuer, audience: str, named: str) -> None:
    tokens = Tokens({**AUTH, "audience": audience}, issuer.keys())
    assert await tokens.verify_token(ONE.sign(_good(aud=named))) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("aud", "account", HERE),
        ("aud", ["account", "x" * 500], HERE),
        ("aud", {"\x1b[2J": 1}, HERE),
        ("iss", f"{ISSUER}/", ISSUER),
    ],
)
async def test_the_log_says_for_whom_and_by_whom_a_token_is(
    issuer: Issuer, name: str, value: Any, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert await issuer.tokens().verify_token(ONE.sign(_good(**{name: value}))) is None
    [line] = [record.getMessage() for record in caplog.records if "tokens refused" in record.getMessage()]
    shown = repr(str(value)[:80])
    assert line == f"tokens refused: 1; the last: its `{name}` is {shown}, which is not {expected!r}"


async def test_the_log_counts_refused_tokens(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    tokens = issuer.tokens()
    for _ in range(20):
        assert await tokens.verify_token("none") is None
    assert caplog.text.count("tokens refused") == 1


async def test_a_token_that_differs_in_nothing_else_is_taken() -> None:
    """What the cases above are made from."""
    found = Issuer()
    found.have(ONE, CURVE, EDWARDS, THIRD)
    now = int(time.time())
    for token in (
        ONE.sign(_good()),
        ONE.sign(_good(), typ="JWT"),
        *(ONE.sign(_good(typ=kind), typ="JWT") for kind in ("Bearer", "DPoP", "at+jwt", None)),
        ONE.sign(_good(token_use="access"), typ=None),
        ONE.sign(_good(token_type="Bearer", tokenName="access_token"), typ="JWT"),
        ONE.sign(_good(typ="of the issuer's own"), typ="at+jwt"),
        ONE.sign(_good(sub=None)),
        ONE.sign(_good(client_id=None)),
        ONE.sign(_good(aud=["https://x.example.com", HERE])),
        ONE.sign(_good(exp=now - int(SKEW) + 20, nbf=now + int(SKEW) - 10)),
        ONE.sign(_good(nonce="n")),  # of the type of access tokens
    ):
        assert await found.tokens().verify_token(token) is not None


@pytest.mark.filterwarnings("ignore:The RSA key is")  # of PyJWT from 2.11 on
async def test_a_weak_key_verifies_nothing() -> None:
    found = Issuer()
    found.have(SMALL)
    assert await found.tokens().verify_token(SMALL.sign(_good())) is None


@pytest.mark.parametrize(
    ("published", "kid"),
    [
        ([ONE], None),
        ([ONE, CURVE], None),
        ([{**ONE.jwk(), "use": "enc"}, {**ONE.jwk(), "kid": "other"}], "other"),
        ([{**ONE.jwk(), "kid": "same"}, {**CURVE.jwk(), "kid": "same"}], "same"),
        ([{**ONE.jwk(), "key_ops": ["verify"]}], "one"),
        ([{**ONE.jwk(), "alg": "RS256"}, "no key", None, {"kty": "oct", "k": "AA", "kid": "one"}], "one"),
        ([{**ONE.jwk(), "kid": ["one"]}, {**ONE.jwk(), "kid": "x"}], "x"),
    ],
    ids=["only one", "only one of its kind", "not for signatures", "same name", "operations", "odd keys", "odd names"],
)
async def test_the_key_is_found(published: list[Any], kid: str | None) -> None:
    found = Issuer()
    found.have()
    wanted = [key.jwk() if isinstance(key, Key) else key for key in published]
    found.answers["/jwks"] = httpx2.Response(200, json={"keys": wanted})
    assert await found.tokens().verify_token(Key(kid, make=lambda: ONE.private).sign(_good())) is not None


OF_EACH_KIND = [
    Key(None, "RS256"),
    Key(None, "ES256", partial(ec.generate_private_key, ec.SECP256R1())),
    Key(None, "ES384", partial(ec.generate_private_key, ec.SECP384R1())),
    Key(None, "ES512", partial(ec.generate_private_key, ec.SECP521R1())),
    Key(None, "EdDSA", ed25519.Ed25519PrivateKey.generate),
]


@pytest.mark.parametrize("key", OF_EACH_KIND, ids=lambda key: key.algorithm)
@pytest.mark.parametrize("kid", [None, "same"])
async def test_a_key_is_told_from_others_by_its_type_and_curve(key: Key, kid: str | None) -> None:
    """Several keys may have no identifier, or one and the same (RFC 7517, 4.5)."""
    found = Issuer()
    named = {} if kid is None else {"kid": kid}
    jwks = [{**each.jwk(), **named} for each in OF_EACH_KIND]
    for jwk in jwks:
        del jwk["alg"]
    found.have(*jwks)
    assert await found.tokens().verify_token(key.sign(_good(), **named)) is not None
    found.have(*(jwk for each, jwk in zip(OF_EACH_KIND, jwks, strict=True) if each is not key))
    assert await found.tokens().verify_token(key.sign(_good(), **named)) is None


@pytest.mark.parametrize(
    "published",
    [
        [{**ONE.jwk(), "use": "enc"}],
        [{**ONE.jwk(), "key_ops": ["sign"]}],
        [{**ONE.jwk(), "alg": "PS256"}],
        [{**ONE.jwk(), "kty": "EC"}],
        [{**ONE.jwk(), "n": 7}],
        [{**ONE.jwk(), "n": "AA"}],
        [{**ONE.jwk(), "e": "!"}],
        [{"kty": "RSA", "kid": "one"}],
        [{"kty": "oct", "kid": "one", "k": "AAAA", "alg": "RS256"}],
        [ONE.jwk(), Key("one", make=lambda: TWO.private)],
    ],
)
async def test_a_key_that_does_not_fit_verifies_nothing(published: list[Any]) -> None:
    found = Issuer()
    found.have()
    wanted = [key.jwk() if isinstance(key, Key) else key for key in [*published, CURVE]]
    found.answers["/jwks"] = lambda: httpx2.Response(200, json={"keys": wanted})
    assert await found.tokens().verify_token(ONE.sign(_good())) is None


PATHS = {
    "https://auth.example.com": [METADATA, "/.well-known/openid-configuration"],
    "https://auth.example.com/tenant": [
        f"{METADATA}/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ],
}


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("name", PATHS)
async def test_metadata_are_found_in_the_order_of_mcp(name: str, number: int) -> None:
    found = Issuer()
    paths = PATHS[name]
    found.have(ONE, metadata=paths[min(number, len(paths) - 1)], issuer=name)
    assert await found.keys(issuer=name).find("one", "RS256") is not None
    assert found.asked == [*paths[: min(number, len(paths) - 1) + 1], "/jwks"]


async def test_keys_are_asked_for_where_the_manifest_says() -> None:
    found = Issuer()
    found.have(ONE)
    assert await found.keys(jwks_uri=f"{ISSUER}/jwks").find("one", "RS256") is not None
    assert found.asked == ["/jwks"]


def _text(text: str) -> Callable[[], httpx2.Response]:
    return lambda: httpx2.Response(200, text=text)


WRONG_METADATA: dict[str, Any] = {
    "of another issuer": _text(json.dumps({"issuer": "https://evil.example.com", "jwks_uri": f"{ISSUER}/jwks"})),
    "of nobody": _text(json.dumps({"jwks_uri": f"{ISSUER}/jwks"})),
    "redirecting": lambda: httpx2.Response(302, headers={"location": f"{ISSUER}/elsewhere"}),
    "huge": _text(json.dumps({"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks", "x": "x" * 600_000})),
    "nested deeply": _text("[" * 100_000),
    "a list": _text("[]"),
    "no JSON": _text("<html>"),
    "a failure": lambda: httpx2.Response(500),
    "a broken connection": lambda: httpx2.ConnectError("no"),
    "without keys": _text(json.dumps({"issuer": ISSUER})),
    "keys over http": _text(json.dumps({"issuer": ISSUER, "jwks_uri": "http://auth.example.com/jwks"})),
    "keys of this machine": _text(json.dumps({"issuer": ISSUER, "jwks_uri": "http://127.0.0.1/jwks"})),
    "keys in a file": _text(json.dumps({"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"})),
    "keys at no URL": _text(json.dumps({"issuer": ISSUER, "jwks_uri": "http://["})),
    "keys are a number": _text(json.dumps({"issuer": ISSUER, "jwks_uri": 7})),
}


@pytest.mark.parametrize("answer", WRONG_METADATA.values(), ids=WRONG_METADATA)
async def test_wrong_metadata_give_no_keys(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    found = Issuer()
    found.have(ONE)
    found.answers["/elsewhere"] = found.answers[METADATA]
    found.answers[METADATA] = answer
    with pytest.raises(VerificationUnavailableError, match="cannot fetch the keys"):
        await found.tokens().verify_token(ONE.sign(_good()))
    assert "/jwks" not in found.asked
    assert "/elsewhere" not in found.asked
    assert "cannot fetch the keys" in caplog.text
    assert len(caplog.text) < 2000


@pytest.mark.parametrize(
    "said",
    ["{}", '{"keys": {}}', '{"keys": []}', "[]", "{", "[" * 100_000, json.dumps({"keys": [], "x": "x" * 600_000})],
)
async def test_what_is_no_set_of_keys_gives_none(said: str) -> None:
    found = Issuer()
    found.have()
    found.answers["/jwks"] = _text(said)
    with pytest.raises(VerificationUnavailableError):
        await found.tokens().verify_token(ONE.sign(_good()))


async def test_unknown_keys_are_asked_for_no_more_often_than_the_pause(clock: Clock) -> None:
    found = Issuer()
    found.have(ONE)
    verifier = found.tokens(pause=30)
    assert await verifier.verify_token(ONE.sign(_good())) is not None
    for _ in range(20):
        clock.now += 1.5
        with pytest.raises(VerificationUnavailableError) as refusal:
            await verifier.verify_token(TWO.sign(_good()))
        assert refusal.value.retry_after == max(1, math.ceil(1030 - clock.now))
    assert found.asked.count("/jwks") == 1
    found.have(TWO)
    clock.now += 0.5
    assert await verifier.verify_token(TWO.sign(_good())) is not None
    assert found.asked.count("/jwks") == 2
    clock.now += 31
    assert await verifier.verify_token(ONE.sign(_good())) is None  # the issuer was asked, and has no such key
    assert found.asked.count("/jwks") == 3


async def test_many_at_once_ask_once() -> None:
    found = Issuer(wait=0.02)
    found.have(ONE)
    verifier = found.tokens(pause=30)
    taken = []

    async def verify() -> None:
        taken.append(await verifier.verify_token(ONE.sign(_good())) is not None)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(verify)
    assert taken == [True] * 20
    assert found.asked == [METADATA, "/jwks"]


async def test_an_issuer_that_is_down_is_asked_again_soon(clock: Clock) -> None:
    found = Issuer()
    verifier = found.tokens(pause=30)
    for _ in range(5):
        with pytest.raises(VerificationUnavailableError):
            await verifier.verify_token(ONE.sign(_good()))
        clock.now += 1
    assert len(found.asked) == 2
    found.have(ONE)
    clock.now += 0.5
    assert await verifier.verify_token(ONE.sign(_good())) is not None


async def test_known_keys_go_on_while_the_issuer_is_slow_or_down(clock: Clock) -> None:
    found = Issuer()
    found.have(ONE)
    verifier = found.tokens(kept=60)
    assert await verifier.verify_token(ONE.sign(_good())) is not None
    clock.now += 61
    found.answers.clear()
    found.gate = anyio.Event()
    verified: list[bool] = []
    most = anyio.Event()

    async def verify() -> None:
        verified.append(await verifier.verify_token(ONE.sign(_good())) is not None)
        if len(verified) == 9:
            most.set()

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(verify)
        with anyio.fail_after(60):
            await most.wait()
        await anyio.wait_all_tasks_blocked()
        assert verified == [True] * 9, "one asks, and nobody else waits for the answer"
        found.gate.set()
    assert verified == [True] * 10


async def test_keys_hold_for_so_long_without_the_issuer(clock: Clock) -> None:
    found = Issuer()
    found.have(ONE)
    verifier = found.tokens(kept=60, longest=600)
    assert await verifier.verify_token(ONE.sign(_good())) is not None
    found.answers.clear()
    clock.now += 61
    assert await verifier.verify_token(ONE.sign(_good())) is not None
    clock.now += 540
    with pytest.raises(VerificationUnavailableError):
        await verifier.verify_token(ONE.sign(_good()))


async def test_a_caller_that_leaves_does_not_take_the_keys_along() -> None:
    found = Issuer(wait=0.05)
    found.have(ONE)
    verifier = found.tokens(pause=30)
    with anyio.move_on_after(0.01) as scope:
        await verifier.verify_token(ONE.sign(_good()))
    assert scope.cancel_called
    assert await verifier.verify_token(ONE.sign(_good())) is not None


async def test_what_is_kept_does_not_grow_with_what_is_sent() -> None:
    found = Issuer()
    found.have(ONE)
    keys = found.keys(pause=3600)
    verifier = Tokens(AUTH, keys)
    for number in range(100):
        with pytest.raises(VerificationUnavailableError) if number else nullcontext():
            await verifier.verify_token(ONE.sign(_good(), kid=f"key-{number}"))
    assert len(keys._ready) == 0
    assert await verifier.verify_token(ONE.sign(_good())) is not None
    assert len(keys._ready) == 1


def test_tokens_are_taken_out_of_texts() -> None:
    token = ONE.sign(_good())
    assert logs.redact_text(f"before {token} after") == "before [token] after"


async def test_the_environment_s_proxy_leads_to_the_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the APIs that tools call; otherwise tokens could not be verified behind a proxy."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asked: list[bytes] = []

        def answer() -> None:
            for _ in range(2):  # the two places of its metadata
                connection, _ = listener.accept()
                with connection:
                    asked.append(connection.recv(200))
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(VerificationUnavailableError):
            await Keys("https://auth.example.com").find("one", "RS256")
        thread.join(60)
    assert [line.partition(b" HTTP")[0] for line in asked] == [b"CONNECT auth.example.com:443"] * 2
