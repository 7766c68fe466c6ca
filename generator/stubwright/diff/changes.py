"""Changes between two manifests, and the table of change codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from stubwright.diagnostics import Place
from stubwright.targets import PORTABLE

if TYPE_CHECKING:
    from stubwright.ir import Json

Impact: TypeAlias = Literal["breaking", "may break", "words", "compatible", "cosmetic"]
Side: TypeAlias = Literal["wire", "python", "typescript"]
Key: TypeAlias = "tuple[str, Impact, str | None, str, str, Place | None, Place | None]"
Bump: TypeAlias = Literal["major", "minor", "patch"]

IMPACTS: Final[tuple[Impact, ...]] = ("breaking", "may break", "words", "compatible", "cosmetic")
"""The impacts, worst first. `words` changes break no client, but models read and may follow them."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """Old and new text that models read: a string, a value that contains strings, or None."""

    old: Json
    new: Json


@dataclass(frozen=True, slots=True)
class Change:
    """A change between two manifests.

    Attributes:
        side: `wire` if models or clients of the old server see the change, `python` if handlers or typed callers do,
            and `typescript` if TypeScript callers do.
        impact: Whether the change breaks clients or code.
        subject: The changed part, such as "tool `get_weather`".
        message: A clause that describes the change.
        old: The part's location in the old manifest, if any.
        new: The part's location in the new manifest, if any.
        help: The reason for the impact, or a remedy.
        ignored: True if the manifest's `diff: {ignore: …}` lists the code.
        target: The client or API that the change breaks, or None if it can break any.
        words: The old and new text that models read, if the impact is `words`.
        is_equal: True if both schemas provably accept the same values.
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
    words: TextChange | None = None
    is_equal: bool = False

    @property
    def key(self) -> Key:
        """A key that equal changes share, such as a change in a file that several manifests include."""
        return self.code, self.impact, self.target, self.subject, self.message, self.old, self.new

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"unknown change code {self.code}")


@dataclass(frozen=True, slots=True)
class Subject:
    """A part of a manifest that is compared: its name in messages, and its location in each manifest."""

    name: str
    old: Place | None = None
    new: Place | None = None
    side: Side = "wire"

    def at(self, *steps: str) -> Subject:
        """Return a subject with the same name, but at a nested location."""
        old, new = (place and Place(place.file, (*place.pointer, *steps)) for place in (self.old, self.new))
        return replace(self, old=old, new=new)

    def change(self, code: str, impact: Impact, message: str, why: str | None = None) -> Change:
        """Return a change to the subject."""
        return Change(code, self.side, impact, self.name, message, self.old, self.new, why)

    def change_words(self, code: str, message: str, old: Json, new: Json) -> Change:
        """Return a change to text that models read. `old` and `new` are the values, or None if absent."""
        return replace(self.change(code, "words", message), words=TextChange(old, new))


def _make_table(*rows: tuple[str, Side, str]) -> dict[str, tuple[Side, str]]:
    table = {code: (side, meaning) for code, side, meaning in rows}
    if len(table) != len(rows):
        raise ValueError("a code is listed twice")
    return table


CODES: Final = _make_table(
    ("SW501", "wire", "A description changed."),
    ("SW502", "wire", "A title, an icon, `_meta` or another descriptive field changed."),
    ("SW503", "wire", "A list's order changed."),
    ("SW504", "wire", "The server's name, version or instructions changed."),
    ("SW505", "wire", "A capability was added or removed."),
    ("SW506", "wire", "The required authorization changed."),
    ("SW507", "wire", "The list format, the argument parsing or the oldest supported revision changed."),
    ("SW508", "wire", "`format` became an assertion, or stopped being one."),
    ("SW509", "wire", "Argument values were added to or removed from audit records."),
    ("SW510", "wire", "A tool was removed."),
    ("SW511", "wire", "A tool was added."),
    ("SW512", "wire", "A tool was renamed."),
    ("SW513", "wire", "A hint (a tool annotation) changed."),
    ("SW514", "wire", "A tool's task support changed."),
    ("SW515", "wire", "The scopes that a tool requires changed."),
    ("SW516", "wire", "The header that mirrors a parameter (`x-mcp-header`) changed."),
    ("SW517", "wire", "An `outputSchema` was removed."),
    ("SW518", "wire", "An `outputSchema` was added."),
    ("SW519", "wire", "A deprecation was added, removed or changed."),
    ("SW520", "wire", "A policy (a limit, a confirmation) changed."),
    ("SW521", "wire", "The questions during a call changed."),
    ("SW523", "wire", "The arguments that the server sets from the caller's token changed."),
    ("SW522", "wire", "The implementation behind a tool (`http`, or its API) changed."),
    ("SW524", "wire", "The kind or lifetime of a state handle, or the use of its IDs in tools, changed."),
    ("SW525", "wire", "An alias (an old tool name) was added, removed or changed."),
    ("SW530", "wire", "An optional property was added."),
    ("SW531", "wire", "A required property was added."),
    ("SW532", "wire", "A property was removed."),
    ("SW533", "wire", "A property was renamed."),
    ("SW534", "wire", "A property became required."),
    ("SW535", "wire", "A property is no longer required."),
    ("SW536", "wire", "A type changed."),
    ("SW537", "wire", "The allowed values (`enum`, `const`) changed."),
    ("SW538", "wire", "A limit on a number, a length or a count changed."),
    ("SW539", "wire", "A `pattern` or `format` changed."),
    ("SW540", "wire", "The schema of additional properties or items changed."),
    ("SW541", "wire", "Alternatives or conditions (`anyOf`, `if`, …) changed."),
    ("SW542", "wire", "Another schema keyword changed."),
    ("SW543", "wire", "A reference points to another schema."),
    ("SW544", "wire", "A schema's dialect changed."),
    ("SW545", "wire", "Several schema edits together may be breaking, but no single edit is."),
    ("SW546", "wire", "A default, which is an annotation on the wire, changed."),
    ("SW547", "wire", "Descriptive text or unknown keywords in a schema changed."),
    ("SW550", "wire", "A resource, template or prompt was removed."),
    ("SW551", "wire", "A resource, template or prompt was added."),
    ("SW552", "wire", "A prompt argument became required."),
    ("SW553", "wire", "A prompt argument was removed."),
    ("SW554", "wire", "An optional prompt argument was added, or a required one became optional."),
    ("SW555", "wire", "A MIME type changed."),
    ("SW556", "wire", "The completions changed."),
    ("SW557", "wire", "Static content changed."),
    ("SW560", "wire", "A client or an API no longer accepts a tool or the tool list."),
    ("SW561", "wire", "A toolset or its contents changed."),
    ("SW562", "wire", "A skill or its contents changed."),
    ("SW580", "python", "The package or its classes were renamed, or the set of generated files changed."),
    ("SW581", "python", "Handlers need a new method."),
    ("SW582", "python", "A method was removed."),
    ("SW583", "python", "A handler's signature changed."),
    ("SW584", "python", "A parameter of a client method was added or removed, or became required."),
    ("SW585", "python", "A type in a client method changed."),
    ("SW586", "python", "A class was removed."),
    ("SW587", "python", "A model attribute was added or removed."),
    ("SW588", "python", "The type of a model attribute changed."),
    ("SW589", "python", "The default of a model attribute was added, removed or changed."),
    ("SW590", "python", "A client method was added."),
)
"""The side and meaning of each code."""


def name_class(impact: Impact, target: str | None) -> str:
    """Return the title of an impact: `breaking`, or `breaks gemini` for changes that affect only one target."""
    if target is None:
        return impact
    who = "some clients" if target == PORTABLE else target
    return f"breaks {who}" if impact == "breaking" else f"{impact} {who}"


def find_worst_impact(changes: Iterable[Change]) -> Impact | None:
    """Return the worst impact among the changes that are not ignored, or None."""
    impacts = {change.impact for change in changes if not change.ignored}
    return next((impact for impact in IMPACTS if impact in impacts), None)


def suggest_bump(changes: Iterable[Change], version: str) -> Bump | None:
    """Return the version part to bump (https://semver.org), or None if there is no version or no change.

    Before 1.0.0, bump the next lower part (semver.org, 4), but never only the patch for a change that can break a
    client. A change that breaks only handlers counts as compatible, since the version is for callers and the server's
    own code contains the handlers.
    """
    bumps = _EARLY_BUMPS if version.removeprefix("v").startswith("0.") else _BUMPS
    counted = [change for change in changes if not change.ignored and not change.is_equal]
    impacts = {"compatible" if change.code in _HANDLERS else change.impact for change in counted}
    parts = {bumps[impact] for impact in impacts}
    return next((part for part in _PARTS if part in parts), None) if version else None


_HANDLERS: Final = frozenset({"SW581", "SW583"})
_PARTS: Final[tuple[Bump, ...]] = ("major", "minor", "patch")
_BUMPS: Final[Mapping[Impact, Bump]] = {
    "breaking": "major",
    "may break": "minor",
    "words": "patch",
    "compatible": "minor",
    "cosmetic": "patch",
}
_EARLY_BUMPS: Final[Mapping[Impact, Bump]] = {
    "breaking": "minor",
    "may break": "minor",
    "words": "patch",
    "compatible": "patch",
    "cosmetic": "patch",
}
_VERSION: Final = re.compile(r"(v?)(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:[-+].*)?")


def raise_version(version: str, part: Bump) -> str | None:
    """Bump one part of a semantic version. Return None if the version is not a semantic version."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    lead, numbers = match[1], [int(number) for number in match.groups()[1:]]
    at = _PARTS.index(part)
    raised = [*numbers[:at], numbers[at] + 1, *[0] * (2 - at)]
    return lead + ".".join(str(number) for number in raised)
