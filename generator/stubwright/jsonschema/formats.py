"""JSON Schema 2020-12 formats (Validation, section 7.3): sample generators, and the meaning of `format`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict
from uuid import UUID

if TYPE_CHECKING:
    from random import Random

    from stubwright.ir import Formats

WORDS: Final = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper", "lark")
"""Words for generated strings."""


def _make_date(chance: Random) -> str:
    return f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"


def _make_time(chance: Random) -> str:
    return f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:00Z"


def _choose_word(chance: Random) -> str:
    return chance.choice(WORDS)


FORMATS: Final[Mapping[str, Callable[[Random], str]]] = {
    "date": _make_date,
    "time": _make_time,
    "date-time": lambda chance: f"{_make_date(chance)}T{_make_time(chance)}",
    "duration": lambda chance: f"PT{chance.randint(1, 59)}M",
    "email": lambda chance: f"{_choose_word(chance)}@example.com",
    "idn-email": lambda chance: f"{_choose_word(chance)}@example.com",
    "hostname": lambda chance: f"{_choose_word(chance)}.example.com",
    "idn-hostname": lambda chance: f"{_choose_word(chance)}.example.com",
    "ipv4": lambda chance: f"192.0.2.{chance.randint(1, 254)}",
    "ipv6": lambda chance: f"2001:db8::{chance.randint(1, 0xFFFF):x}",
    "uri": lambda chance: f"https://example.com/{_choose_word(chance)}",
    "uri-reference": lambda chance: f"/{_choose_word(chance)}",
    "uri-template": lambda chance: f"https://example.com/{{{_choose_word(chance)}}}",
    "iri": lambda chance: f"https://example.com/{_choose_word(chance)}",
    "iri-reference": lambda chance: f"/{_choose_word(chance)}",
    "uuid": lambda chance: str(UUID(int=chance.getrandbits(128), version=4)),
    "json-pointer": lambda chance: f"/{_choose_word(chance)}",
    "relative-json-pointer": lambda chance: f"{chance.randint(0, 3)}/{_choose_word(chance)}",
    "regex": lambda chance: f"^{_choose_word(chance)}$",
}
"""A sample generator for each format."""


class Settings(TypedDict):
    """The format settings for `stubwright_runtime.schema.validation`."""

    formats: bool
    exact: bool


def get_meaning(entry: Mapping[str, Any]) -> Formats:
    """Return the meaning of `format` under a manifest's `formats` and `python.formats`."""
    asserted = entry.get("formats") == "assert"
    return choose_meaning(formats=asserted, exact=(entry.get("python") or {}).get("formats") == "strict")


def choose_meaning(*, formats: bool, exact: bool) -> Formats:
    """Return the meaning of `format`: asserted if `formats`, and limited to exact Python values if `exact`."""
    if exact:
        return "assert and exact" if formats else "exact"
    return "assert" if formats else "annotate"


def get_settings(meaning: Formats) -> Settings:
    """Return the validation settings for a meaning of `format`."""
    return {"formats": meaning in ("assert", "assert and exact"), "exact": meaning in ("exact", "assert and exact")}
