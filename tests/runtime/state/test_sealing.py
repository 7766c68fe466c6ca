"""Seals: a state opens only for its call, before its expiry."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import amounts
from stubwright_runtime.state.encryption import DecryptionError, Encryption
from stubwright_runtime.state.sealing import Call, InvalidStateError, StateSealer

KEYS = [b"k" * 32, b"l" * 32]
SECONDS = 3600.0
NOW = 1_800_000_000.0
CALL = Call("tools/call", {"name": "pay", "arguments": {"sum": 3}}, "ann")

TEXTS = st.text(st.characters(), max_size=20)  # lone surrogates as well
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
PARAMS = st.fixed_dictionaries({"name": TEXTS}, optional={"arguments": st.dictionaries(TEXTS, JSON, max_size=3)})
CALLS = st.builds(Call, st.sampled_from(["tools/call", "prompts/get"]), PARAMS, TEXTS) | st.builds(
    Call, st.just("resources/read"), st.fixed_dictionaries({"uri": TEXTS}), TEXTS
)


def sealing(*keys: bytes, server: str = "shop", seconds: float = SECONDS) -> StateSealer:
    return StateSealer(keys or KEYS[:1], server, seconds)


def refusal(sealed: object, call: Call = CALL, now: float = NOW, by: StateSealer | None = None) -> str:
    with pytest.raises(InvalidStateError) as refused:
        (by or sealing()).open(sealed, call, now)
    return str(refused.value)


def texts(call: Call) -> tuple[str, str, str]:
    """What makes two calls the same one."""
    given = {key: value for key, value in call.params.items() if value}
    return call.method, call.caller, json.dumps(given, sort_keys=True)


@given(JSON, CALLS, st.floats(0, SECONDS, exclude_max=True))
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_a_state_opens_for_its_call(state: Any, call: Call, later: float) -> None:
    for text in (json.dumps(state), json.dumps(state, ensure_ascii=False)):
        sealed = sealing().seal(text, call, NOW)
        assert sealed.isascii()
        assert sealing().open(sealed, call, NOW + min(later, SECONDS - 0.001)) == text


@given(CALLS, CALLS)
@example(Call("tools/call", {"name": "a"}, "ann"), Call("prompts/get", {"name": "a"}, "ann"))
@example(Call("tools/call", {"name": "a"}, "ann"), Call("tools/call", {"name": "b"}, "ann"))
@example(Call("tools/call", {"name": "a"}, "ann"), Call("tools/call", {"name": "a"}, "bob"))
@example(Call("tools/call", {"name": "a"}, "ann"), Call("tools/call", {"uri": "a"}, "ann"))
@example(Call("tools/call", {"name": "a", "arguments": {"x": 1}}, "ann"), Call("tools/call", {"name": "a"}, "ann"))
@example(
    Call("tools/call", {"name": "a", "arguments": {"x": 1}}, "ann"),
    Call("tools/call", {"name": "a", "arguments": {"x": True}}, "ann"),
)
@example(
    Call("tools/call", {"name": "a", "arguments": {"x": 1}}, "ann"),
    Call("tools/call", {"name": "a", "arguments": {"x": "1"}}, "ann"),
)
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_a_state_opens_for_no_other_call(one: Call, other: Call) -> None:
    assume(texts(one) != texts(other))
    why = "it belongs to another caller" if one.caller != other.caller else "it belongs to another call"
    assert refusal(sealing().seal("{}", one, NOW), other) == why


def test_what_differs_between_rounds_is_not_bound() -> None:
    """Nor does the order of arguments matter, nor whether there are none, or `{}`."""
    first = replace(CALL, params={"name": "a", "arguments": {"x": 1, "y": 2}, "_meta": {"progressToken": 1}})
    again = replace(
        CALL, params={"arguments": {"y": 2, "x": 1}, "name": "a", "inputResponses": {}, "requestState": "s"}
    )
    assert sealing().open(sealing().seal("{}", first, NOW), again, NOW) == "{}"
    bare, empty = (replace(CALL, params=params) for params in ({"name": "a"}, {"name": "a", "arguments": {}}))
    assert sealing().open(sealing().seal("{}", bare, NOW), empty, NOW) == "{}"


@given(st.data())
def test_a_token_that_is_changed_anywhere_does_not_open(data: st.DataObject) -> None:
    sealed = sealing().seal('{"a": 1}', CALL, NOW)
    raw = bytearray(urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert refusal(urlsafe_b64encode(raw).rstrip(b"=").decode()) in ("an unknown key", "authentication failed")
    place = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.characters().filter(lambda char: char != sealed[place]))
    assert refusal(f"{sealed[:place]}{other}{sealed[place + 1 :]}")
    assert refusal(sealed[:place])


@given(JSON | st.binary() | st.text("abcABC019-_+/=. \n"))
def test_what_is_no_token_does_not_open(value: object) -> None:
    assert refusal(value) in ("it is malformed", "an unknown key")


@pytest.mark.parametrize("length", range(4))
def test_a_token_has_one_spelling(length: int) -> None:
    sealed = sealing().seal("x" * length, CALL, NOW)
    for other in (f"{sealed}=", f"{sealed}==", f"{sealed}\n", f" {sealed}", f"{sealed[:9]}.{sealed[9:]}", f"{sealed}A"):
        assert refusal(other) in ("it is malformed", "authentication failed")
    if padding := -len(sealed) % 4:
        spelled = [
            f"{sealed[:-1]}{char}" for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        ]
        raw = urlsafe_b64decode(sealed + "=" * padding)
        same = [text for text in spelled if text != sealed and urlsafe_b64decode(text + "=" * padding) == raw]
        assert same  # the bits that are left over
        assert {refusal(text) for text in same} == {"it is malformed"}


def test_each_token_is_another_one() -> None:
    assert len({sealing().seal("{}", CALL, NOW) for _ in range(100)}) == 100


def test_a_token_shows_nothing() -> None:
    sealed = sealing().seal("a secret", CALL, NOW)
    raw = urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
    assert not [word for word in (b"secret", b"pay", b"ann", b"shop") if word in raw]


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (NOW + SECONDS, "it has expired"),
        (NOW + SECONDS * 100, "it has expired"),
        (NOW - 61, "it expires too late: the clock was set back, or another process has a fast clock"),
    ],
)
def test_a_state_holds_for_its_time(now: float, why: str) -> None:
    sealed = sealing().seal("{}", CALL, NOW)
    for then in (NOW - 59, NOW, NOW + SECONDS - 0.001):
        assert sealing().open(sealed, CALL, then) == "{}"
    assert refusal(sealed, now=now) == why


def test_another_server_with_the_same_keys_does_not_open_it() -> None:
    assert refusal(sealing(server="inn").seal("{}", CALL, NOW)) == "it belongs to another server"


def test_the_first_key_seals_and_all_open() -> None:
    old, new = KEYS
    sealed = sealing(old).seal("{}", CALL, NOW)
    assert sealing(new, old).open(sealed, CALL, NOW) == "{}"
    assert sealing(old, new).open(sealing(new, old).seal("{}", CALL, NOW), CALL, NOW) == "{}"
    assert refusal(sealing(new, old).seal("{}", CALL, NOW), by=sealing(old)) == "an unknown key"
    assert refusal(sealed, by=sealing(new)) == "an unknown key"
    for keys in ([], [b"short"], [old, b"short"]):
        with pytest.raises(ValueError, match="32 bytes"):
            StateSealer(keys, "shop", SECONDS)


def test_a_value_of_the_store_is_no_state() -> None:
    """They have the same keys, and clients see states."""
    kept = Encryption(KEYS).encrypt(b"x" * 200, "")
    assert refusal(urlsafe_b64encode(kept).rstrip(b"=").decode()) == "an unknown key"
    sealed = sealing().seal("{}", CALL, NOW)
    with pytest.raises(DecryptionError):
        Encryption(KEYS).decrypt(urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4)), "")
