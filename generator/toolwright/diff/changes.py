"""What a change between two manifests is, and the one table of its codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolwright.targets import PORTABLE

if TYPE_CHECKING:
    from toolwright.diagnostics import Place

Impact: TypeAlias = Literal["breaking", "may break", "compatible", "cosmetic"]
Side: TypeAlias = Literal["wire", "python"]
Bump: TypeAlias = Literal["major", "minor", "patch"]

IMPACTS: Final[tuple[Impact, ...]] = ("breaking", "may break", "compatible", "cosmetic")
"""From the worst to the most harmless."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    `side` is `wire` for what a model or a client that knew the old server sees, and `python` for handlers and typed
    callers. `subject` is what changed, such as "tool `get_weather`"; `old` and `new` are its places, where there are
    such. `help` says why, or what to do. `ignored` says that the manifest's `diff: {ignore: …}` counts it as harmless.
    `target` is the client or the API that it breaks, where it is only that one.
    """

    code: str
    side: Side
    impact: Impact
    subject: str
    message: str
    old: Place | None = None
    new: Place | None = None
    help: str | None = None
    ignored: bool = False
    target: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"unknown code of a change {self.code}")


def _make_table(*rows: tuple[str, Side, str]) -> dict[str, tuple[Side, str]]:
    table = {code: (side, meaning) for code, side, meaning in rows}
    if len(table) != len(rows):
        raise ValueError("a code is listed twice")
    return table


CODES: Final = _make_table(
    ("TW501", "wire", "A description changed."),
    ("TW502", "wire", "A title, an icon, `_meta` or another field that only informs changed."),
    ("TW503", "wire", "A list is in another order."),
    ("TW504", "wire", "The server's name, version or instructions changed."),
    ("TW505", "wire", "A capability came or went."),
    ("TW506", "wire", "What authorization callers need changed."),
    ("TW507", "wire", "How lists are sent, or the oldest supported revision, changed."),
    ("TW508", "wire", "Whether `format` is asserted changed."),
    ("TW509", "wire", "Whether records of calls have the values of arguments changed."),
    ("TW510", "wire", "A tool is gone."),
    ("TW511", "wire", "A tool is new."),
    ("TW512", "wire", "A tool is renamed."),
    ("TW513", "wire", "A hint (an annotation of a tool) changed."),
    ("TW514", "wire", "Whether a tool runs as a task changed."),
    ("TW515", "wire", "The scopes that a tool requires changed."),
    ("TW516", "wire", "The header that mirrors a parameter (`x-mcp-header`) changed."),
    ("TW517", "wire", "An `outputSchema` is gone."),
    ("TW518", "wire", "An `outputSchema` is new."),
    ("TW519", "wire", "Whether something is deprecated changed."),
    ("TW520", "wire", "A policy (a limit, a confirmation) changed."),
    ("TW521", "wire", "What is asked in the middle of a call changed."),
    ("TW523", "wire", "What the server sets from the caller's token changed."),
    ("TW522", "wire", "The implementation behind a tool (`http`, or its API) changed."),
    ("TW524", "wire", "State handles changed: a kind, how long one lives, or where tools have its ids."),
    ("TW530", "wire", "An optional property is new."),
    ("TW531", "wire", "A required property is new."),
    ("TW532", "wire", "A property is gone."),
    ("TW533", "wire", "A property is renamed."),
    ("TW534", "wire", "A property is required now."),
    ("TW535", "wire", "A property is no longer required."),
    ("TW536", "wire", "A type changed."),
    ("TW537", "wire", "The values allowed (`enum`, `const`) changed."),
    ("TW538", "wire", "A bound changed: of a number, a length or a count."),
    ("TW539", "wire", "A `pattern` or `format` changed."),
    ("TW540", "wire", "What is allowed for keys and items without their own schema changed."),
    ("TW541", "wire", "Alternatives or conditions (`anyOf`, `if`, …) changed."),
    ("TW542", "wire", "Another keyword of a schema changed."),
    ("TW543", "wire", "A reference leads to another schema."),
    ("TW544", "wire", "A schema is in another dialect."),
    ("TW545", "wire", "A schema changed in a way that no single edit explains."),
    ("TW546", "wire", "A default changed, which is an annotation on the wire."),
    ("TW547", "wire", "Words in a schema changed, or keywords without a meaning."),
    ("TW550", "wire", "A resource, template or prompt is gone."),
    ("TW551", "wire", "A resource, template or prompt is new."),
    ("TW552", "wire", "An argument of a prompt is required now."),
    ("TW553", "wire", "An argument of a prompt is gone."),
    ("TW554", "wire", "An argument of a prompt is optional: a new one, or one that was required."),
    ("TW555", "wire", "A MIME type changed."),
    ("TW556", "wire", "What is completed changed."),
    ("TW557", "wire", "Static content changed."),
    ("TW560", "wire", "A client or an API no longer takes a tool, or the list of tools."),
    ("TW561", "wire", "A toolset, or what is in it, changed."),
    ("TW580", "python", "The package or its classes are renamed, or what is generated changed."),
    ("TW581", "python", "Handlers must have another method."),
    ("TW582", "python", "A method is gone."),
    ("TW583", "python", "A handler's signature changed."),
    ("TW584", "python", "A parameter of a client's method is new, gone or required now."),
    ("TW585", "python", "A type in a client's method changed."),
    ("TW586", "python", "A class is gone."),
    ("TW587", "python", "An attribute of a model is new or gone."),
    ("TW588", "python", "The type of a model's attribute changed."),
    ("TW589", "python", "The default of a model's attribute changed, or whether it has one."),
    ("TW590", "python", "A method of a client is new."),
)
"""For each code its side, and what it means."""


def name_class(impact: Impact, target: str | None) -> str:
    """What people call the changes of an impact: `breaking`, or `breaks gemini` where it is about one target."""
    if target is None:
        return impact
    who = "some clients" if target == PORTABLE else target
    return f"breaks {who}" if impact == "breaking" else f"{impact} {who}"


def find_worst_impact(changes: Iterable[Change]) -> Impact | None:
    """The worst impact of those that are not ignored; None without any."""
    impacts = {change.impact for change in changes if not change.ignored}
    return next((impact for impact in IMPACTS if impact in impacts), None)


def suggest_bump(changes: Iterable[Change], version: str) -> Bump | None:
    """Which part of a version should go up (https://semver.org): None where nothing changed, or without a version.

    Before 1.0.0 it is the next lower one (semver.org, 4), but what may break somebody is never a patch.
    """
    worst = find_worst_impact(changes)
    if worst is None or not version:
        return None
    is_early = version.removeprefix("v").startswith("0.")
    return (_EARLY_BUMPS if is_early else _BUMPS)[worst]


_BUMPS: Final[Mapping[Impact, Bump]] = {
    "breaking": "major",
    "may break": "minor",
    "compatible": "minor",
    "cosmetic": "patch",
}
_EARLY_BUMPS: Final[Mapping[Impact, Bump]] = {
    "breaking": "minor",
    "may break": "minor",
    "compatible": "patch",
    "cosmetic": "patch",
}
_VERSION: Final = re.compile(r"(v?)(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:[-+].*)?")


def raise_version(version: str, part: Bump) -> str | None:
    """A semantic version with that part raised; None of a version that is not one."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    lead, numbers = match[1], [int(number) for number in match.groups()[1:]]
    at = ("major", "minor", "patch").index(part)
    raised = [*numbers[:at], numbers[at] + 1, *[0] * (2 - at)]
    return lead + ".".join(str(number) for number in raised)
