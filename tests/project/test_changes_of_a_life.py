"""A project through typical changes of its manifest: the reports are correct and sufficient.

Each change starts from a fresh copy of one project: a manifest, handlers, a typed caller and a test. The tests compare
the output of `check`, `diff`, mypy and pytest with the expectations here; after the owner's fixes, all are silent. mypy
runs once, on a tree with all copies.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import pytest

import forked
from command_line import stubwright

pytestmark = pytest.mark.long

Run: TypeAlias = subprocess.CompletedProcess[str]
Edits: TypeAlias = Mapping[str, tuple[tuple[str, str], ...]]
"""In each file, what is written in place of what."""

ADDRESS: Final = "properties: {street: {type: string}, city: {type: string}}\n    required: [street, city]"
QUOTE: Final = """\
  - name: quote_price
    description: Says what a parcel costs.
    inputSchema:
      type: object
      properties: {to: {$ref: "#/schemas/Address"}, speed: {type: string, enum: [normal, express]}}
      required: [to, speed]
      additionalProperties: false
    outputSchema: {type: object, properties: {euros: {type: number}}, required: [euros]}
"""
TRACK: Final = """\
  - name: track_parcel
    description: Says where a parcel is.
    inputSchema:
      type: object
      properties: {number: {type: string}}
      required: [number]
      additionalProperties: false
    outputSchema:
      type: object
      properties: {state: {type: string, enum: [packed, travelling, delivered]}}
      required: [state]
"""
FILES: Final = {
    "parcels.yaml": f"""\
stubwright: 1
server: {{name: parcels, version: 1.4.0}}
python: {{handlers: "parcels:Parcels"}}
schemas:
  Address:
    type: object
    {ADDRESS}
    additionalProperties: false
tools:
{QUOTE}  - name: send_parcel
    description: Sends a parcel.
    inputSchema:
      type: object
      properties: {{to: {{$ref: "#/schemas/Address"}}}}
      required: [to]
      additionalProperties: false
    outputSchema: {{type: object, properties: {{number: {{type: string}}}}, required: [number]}}
{TRACK}""",
    "parcels.py": """\
from parcels_mcp import Context, ParcelsHandlers
from parcels_mcp import QuotePriceInput, QuotePriceOutput
from parcels_mcp import SendParcelInput, SendParcelOutput
from parcels_mcp import TrackParcelInput, TrackParcelOutput


class Parcels(ParcelsHandlers):
    async def quote_price(self, args: QuotePriceInput, ctx: Context) -> QuotePriceOutput:
        return QuotePriceOutput(euros=8 if args.speed == "express" else 4)

    async def send_parcel(self, args: SendParcelInput, ctx: Context) -> SendParcelOutput:
        return SendParcelOutput(number=args.to.city)

    async def track_parcel(self, args: TrackParcelInput, ctx: Context) -> TrackParcelOutput:
        return TrackParcelOutput(state="travelling" if args.number else "packed")
""",
    "caller.py": """\
from typing import Literal

from parcels_mcp import Address, ParcelsClient


async def ship(parcels: ParcelsClient) -> tuple[float, str]:
    home = Address(street="Rue Cler 1", city="Paris")
    price = await parcels.quote_price(to=home, speed="express")
    sent = await parcels.send_parcel(to=home)
    tracked = await parcels.track_parcel(number=sent.number)
    return price.euros, describe(tracked.state)


def describe(state: Literal["packed", "travelling", "delivered"]) -> str:
    return {"packed": "in the depot", "travelling": "on its way", "delivered": "there"}[state]
""",
    "test_parcels.py": """\
import asyncio

from caller import ship
from parcels import Parcels
from parcels_mcp import ParcelsClient, build_server


def test_a_parcel() -> None:
    async def run() -> tuple[float, str]:
        async with ParcelsClient.connect(build_server(Parcels()), raise_errors=True) as parcels:
            return await ship(parcels)

    assert asyncio.run(run())[0] in (4, 8)
""",
    "pyproject.toml": """\
[project]
name = "parcels"
version = "1.4.0"
dependencies = ["stubwright-runtime"]

[tool.stubwright]
manifests = ["parcels.yaml"]
""",
}
MODULES: Final = [name for name in FILES if name.endswith(".py")]

UNIMPLEMENTED: Final = (
    "the server does not start without this method; `stubwright generate --stubs` writes a stub"  # of a new tool
)


@dataclass(frozen=True)
class Change:
    """A change of the manifest, the reports on it, and the owner's fixes.

    `check` has its findings with their remedies. `diff` has its findings, each a line that starts with the class and
    has the reason, then the suggested version. `mypy` and `pytest` have the errors, if any.
    """

    made: tuple[tuple[str, str], ...]
    check: tuple[str, ...]
    diff: tuple[str, ...]
    breaks: bool
    version: str
    mypy: tuple[str, ...] = ()
    pytest: str = ""
    done: Edits = field(default_factory=dict)


DEPRECATED: Final = "    stubwright: {deprecated: {since: 1.5.0, use: find_parcel}}\n"
ALIAS: Final = "aliases: [{name: track_parcel, removeAfter: 2.0.0, arguments: {number: id}}]"
FOUND: Final = TRACK.replace("track_parcel", "find_parcel").replace("number", "id")
QUOTES: Final = "".join(
    QUOTE.replace("quote_price", name)
    .replace("a parcel", f"a parcel {words}")
    .replace(", speed: {type: string, enum: [normal, express]}", "")
    .replace("[to, speed]", "[to]")
    for name, words in (("quote_normal", "without hurry"), ("quote_express", "in a hurry"))
)
FIND: Final = """
    async def find_parcel(self, args: FindParcelInput, ctx: Context) -> FindParcelOutput:
        return FindParcelOutput(state="packed")
"""

RENAMED: Final = (
    "breaking: SW582 python client `track_parcel`: the method was removed",
    "it was renamed to `find_parcel`",
    "breaking: SW586 python class `TrackParcelInput`: the class was removed",
    "it was renamed to `FindParcelInput`",
    "breaking: SW586 python class `TrackParcelOutput`: the class was removed",
    "it was renamed to `FindParcelOutput`",
    "may break: SW582 python handler `track_parcel`: the method is no longer called",
    "it was renamed to `find_parcel`",
)
"""The output of `diff` on a tool's Python names when the tool is renamed."""

RENAMED_TYPES: Final = (
    'caller.py:10: error: "ParcelsClient" has no attribute "track_parcel"  [attr-defined]',
    'parcels.py:4: error: Module "parcels_mcp" has no attribute "TrackParcelInput"  [attr-defined]',
    'parcels.py:4: error: Module "parcels_mcp" has no attribute "TrackParcelOutput"  [attr-defined]',
    (
        'test_parcels.py:10: error: Cannot instantiate abstract class "Parcels" with abstract attribute '
        '"find_parcel"  [abstract]'
    ),
)
"""mypy's errors for them."""

CHANGES: Final = {
    "rename": Change(
        ((TRACK, TRACK.replace("track_parcel", "find_parcel")),),
        check=(
            "parcels.py:14:15: warning[SW427]: `track_parcel` was renamed to `find_parcel`",
            "help: rename it: `async def find_parcel(self, args: FindParcelInput, ctx: Context) -> FindParcelOutput:`",
        ),
        diff=(
            "breaking: SW512 wire tool `track_parcel`: it was renamed to `find_parcel`",
            "to accept both names, add to the new tool `stubwright: {aliases: [{name: track_parcel}]}`",
            "breaking: SW581 python handler `find_parcel`: handlers must have this method",
            "the server does not start without this method; rename `track_parcel`",
            *RENAMED,
            "compatible: SW590 python client `find_parcel`: a new method",
        ),
        breaks=True,
        version="a major version, 1.4.0 → 2.0.0",
        mypy=RENAMED_TYPES,
        pytest="ImportError: cannot import name 'TrackParcelInput' from",
        done={
            "parcels.py": (("TrackParcel", "FindParcel"), ("track_parcel", "find_parcel")),
            "caller.py": (("track_parcel", "find_parcel"),),
        },
    ),
    "rename-and-keep": Change(
        ((TRACK, TRACK.replace("track_parcel", "find_parcel") + TRACK + DEPRECATED),),
        check=(
            "parcels.py:7:7: warning[SW420]: `Parcels` has no method `find_parcel`",
            "help: write `async def find_parcel(self, args: FindParcelInput, ctx: Context) -> FindParcelOutput:`",
        ),
        diff=(
            "breaking: SW581 python handler `find_parcel`: handlers must have this method",
            UNIMPLEMENTED,
            "compatible: SW511 wire tool `find_parcel`: a new tool",
            "compatible: SW519 wire tool `track_parcel`: it is now deprecated",
            "callers should use `find_parcel`",
            "compatible: SW590 python client `find_parcel`: a new method",
        ),
        breaks=True,
        version="a minor version, 1.4.0 → 1.5.0",
        mypy=(
            (
                'test_parcels.py:10: error: Cannot instantiate abstract class "Parcels" with abstract attribute '
                '"find_parcel"  [abstract]'
            ),
        ),
        pytest="TypeError: Can't instantiate abstract class Parcels with",
        done={
            "parcels.py": (
                ("import Track", "import FindParcelInput, FindParcelOutput, Track"),
                ('"packed")\n', f'"packed")\n{FIND}'),
            )
        },
    ),
    "rename-with-an-alias": Change(
        ((TRACK, f"{FOUND}    stubwright: {{{ALIAS}}}\n"),),
        check=(
            "parcels.py:14:15: warning[SW427]: `track_parcel` was renamed to `find_parcel`",
            "help: rename it: `async def find_parcel(self, args: FindParcelInput, ctx: Context) -> FindParcelOutput:`",
        ),
        diff=(
            "breaking: SW581 python handler `find_parcel`: handlers must have this method",
            "the server does not start without this method; rename `track_parcel`",
            *RENAMED,
            (
                "compatible: SW512 wire tool `track_parcel`: it was renamed to `find_parcel`, and callers can "
                "still use the old name up to version 2.0.0"
            ),
            "compatible: SW590 python client `find_parcel`: a new method",
        ),
        breaks=True,
        version="a major version, 1.4.0 → 2.0.0",
        mypy=RENAMED_TYPES,
        pytest="ImportError: cannot import name 'TrackParcelInput' from",
        done={
            "parcels.py": (("TrackParcel", "FindParcel"), ("track_parcel", "find_parcel"), ("args.number", "args.id")),
            "caller.py": (("track_parcel(number", "find_parcel(id"),),
        },
    ),
    "rename-on-the-wire-alone": Change(
        (
            (
                TRACK,
                TRACK.replace("track_parcel", "find_parcel")
                + "    stubwright: {pythonName: track_parcel, aliases: [{name: track_parcel, removeAfter: 2.0.0}]}\n",
            ),
        ),
        check=(),
        diff=(
            (
                "compatible: SW512 wire tool `track_parcel`: it was renamed to `find_parcel`, and callers can "
                "still use the old name up to version 2.0.0"
            ),
        ),
        breaks=False,
        version="a minor version, 1.4.0 → 1.5.0",
    ),
    "a-required-argument": Change(
        (
            (
                "{number: {type: string}}\n      required: [number]",
                "{number: {type: string}, zip: {type: string}}\n      required: [number, zip]",
            ),
        ),
        check=(),
        diff=(
            "breaking: SW531 wire tool `track_parcel`, argument `zip`: a required property was added",
            'for example {"number": "a"} was accepted and is now rejected',
            "breaking: SW584 python client `track_parcel`: the required parameter `zip` was added",
            "compatible: SW587 python class `TrackParcelInput`: the attribute `zip` was added",
        ),
        breaks=True,
        version="a major version, 1.4.0 → 2.0.0",
        mypy=('caller.py:10: error: Missing named argument "zip" for "track_parcel" of "ParcelsClient"  [call-arg]',),
        pytest="TypeError: ParcelsClient.track_parcel() missing 1 required keyword-only argument: 'zip'",
        done={"caller.py": (("number=sent.number", 'number=sent.number, zip="75007"'),)},
    ),
    "split": Change(
        ((QUOTE, QUOTES),),
        check=(
            "parcels.py:7:7: warning[SW420]: `Parcels` lacks the methods `quote_normal` and `quote_express`",
            "help: write them, or add stubs for all with `stubwright generate --stubs`",
            "parcels.py:8:15: warning[SW421]: `quote_price` is no longer needed",
            "help: delete or rename it",
        ),
        diff=(
            "breaking: SW510 wire tool `quote_price`: the tool was removed",
            "to let callers migrate first, keep it for one version with `stubwright: {deprecated: {use: …}}`",
            "breaking: SW581 python handler `quote_normal`: handlers must have this method",
            UNIMPLEMENTED,
            "breaking: SW581 python handler `quote_express`: handlers must have this method",
            UNIMPLEMENTED,
            "breaking: SW582 python client `quote_price`: the method was removed",
            "breaking: SW586 python class `QuotePriceInput`: the class was removed",
            "breaking: SW586 python class `QuotePriceOutput`: the class was removed",
            "may break: SW582 python handler `quote_price`: the method is no longer called",
            "the server does not call the method, and its annotations may refer to classes that no longer exist",
            "compatible: SW511 wire tool `quote_normal`: a new tool",
            "compatible: SW511 wire tool `quote_express`: a new tool",
            "compatible: SW590 python client `quote_normal`: a new method",
            "compatible: SW590 python client `quote_express`: a new method",
        ),
        breaks=True,
        version="a major version, 1.4.0 → 2.0.0",
        mypy=(
            'caller.py:8: error: "ParcelsClient" has no attribute "quote_price"  [attr-defined]',
            'parcels.py:2: error: Module "parcels_mcp" has no attribute "QuotePriceInput"  [attr-defined]',
            (
                'parcels.py:2: error: Module "parcels_mcp" has no attribute "QuotePriceOutput"; maybe '
                '"QuoteExpressOutput"?  [attr-defined]'
            ),
            (
                'test_parcels.py:10: error: Cannot instantiate abstract class "Parcels" with abstract attributes '
                '"quote_express" and "quote_normal"  [abstract]'
            ),
        ),
        pytest="ImportError: cannot import name 'QuotePriceInput' from",
        done={
            "parcels.py": (
                (
                    "QuotePriceInput, QuotePriceOutput\n",
                    "QuoteExpressInput, QuoteExpressOutput, QuoteNormalInput, QuoteNormalOutput\n",
                ),
                ("QuotePrice", "QuoteExpress"),
                ("quote_price", "quote_express"),
                (
                    '=8 if args.speed == "express" else 4)\n',
                    (
                        "=8)\n\n"
                        "    async def quote_normal(self, args: QuoteNormalInput, ctx: Context) -> QuoteNormalOutput:\n"
                        "        return QuoteNormalOutput(euros=4)\n"
                    ),
                ),
            ),
            "caller.py": (('quote_price(to=home, speed="express")', "quote_express(to=home)"),),
        },
    ),
    "an-argument-loses-a-value": Change(
        (("[normal, express]", "[normal]"),),
        check=(),
        diff=(
            'breaking: SW537 wire tool `quote_price`, argument `speed`: no longer allowed: `"express"`',
            'for example {"speed": "express", "to": {"city": "a", "street": "a"}} was accepted and is now rejected',
            (
                "may break: SW585 python client `quote_price`: `speed` changed from "
                '`Literal["normal", "express"]` to `Literal["normal"]`'
            ),
            (
                "compatible: SW588 python class `QuotePriceInput`: `speed` changed from "
                '`Literal["normal", "express"]` to `Literal["normal"]`'
            ),
        ),
        breaks=True,
        version="a major version, 1.4.0 → 2.0.0",
        mypy=(
            (
                'caller.py:8: error: Argument "speed" to "quote_price" of "ParcelsClient" has incompatible type '
                "\"Literal['express']\"; expected \"Literal['normal']\"  [arg-type]"
            ),
            (
                "parcels.py:9: error: Non-overlapping equality check (left operand type: \"Literal['normal']\", right "
                "operand type: \"Literal['express']\")  [comparison-overlap]"
            ),
        ),
        pytest="ToolFailed: Invalid arguments for quote_price:",
        done={"parcels.py": ((' if args.speed == "express" else 4', ""),), "caller.py": (('"express"', '"normal"'),)},
    ),
    "an-argument-gains-a-value": Change(
        (("[normal, express]", "[normal, express, overnight]"),),
        check=(),
        diff=(
            (
                "may break: SW588 python class `QuotePriceInput`: `speed` changed from "
                '`Literal["normal", "express"]` to `Literal["normal", "express", "overnight"]`'
            ),
            'handlers that read it must expect `Literal["overnight"]`',
            'compatible: SW537 wire tool `quote_price`, argument `speed`: now allowed: `"overnight"`',
            (
                "compatible: SW585 python client `quote_price`: `speed` changed from "
                '`Literal["normal", "express"]` to `Literal["normal", "express", "overnight"]`'
            ),
        ),
        breaks=False,
        version="a minor version, 1.4.0 → 1.5.0",
    ),
    "a-result-loses-a-value": Change(
        (("[packed, travelling, delivered]", "[packed, delivered]"),),
        check=(),
        diff=(
            (
                "may break: SW588 python class `TrackParcelOutput`: `state` changed from "
                '`Literal["packed", "travelling", "delivered"]` to `Literal["packed", "delivered"]`'
            ),
            'handlers that set it to `Literal["travelling"]` must change',
            'compatible: SW537 wire tool `track_parcel`, result `state`: no longer allowed: `"travelling"`',
            "results with other values are now rejected, so handlers must not return them; callers need no change",
        ),
        breaks=False,
        version="a minor version, 1.4.0 → 1.5.0",
        mypy=(
            (
                'parcels.py:15: error: Argument "state" to "TrackParcelOutput" has incompatible type '
                "\"Literal['travelling', 'packed']\"; expected \"Literal['packed', 'delivered']\"  [arg-type]"
            ),
        ),
        pytest="ValidationError: 1 validation error for TrackParcelOutput",
        done={"parcels.py": (('"travelling"', '"delivered"'),)},
    ),
    "a-result-gains-a-value": Change(
        (("[packed, travelling, delivered]", "[packed, travelling, delivered, lost]"),),
        check=(),
        diff=(
            'breaking: SW537 wire tool `track_parcel`, result `state`: now allowed: `"lost"`',
            'for example {"state": "lost"} was impossible and is now possible',
            (
                "may break: SW588 python class `TrackParcelOutput`: `state` changed from "
                '`Literal["packed", "travelling", "delivered"]` to '
                '`Literal["packed", "travelling", "delivered", "lost"]`'
            ),
            'typed callers that read it must expect `Literal["lost"]`',
        ),
        breaks=True,
        version="a major version, 1.4.0 → 2.0.0",
        mypy=(
            (
                'caller.py:11: error: Argument 1 to "describe" has incompatible type '
                "\"Literal['packed', 'travelling', 'delivered', 'lost']\"; expected "
                "\"Literal['packed', 'travelling', 'delivered']\"  [arg-type]"
            ),
        ),
        done={"caller.py": (('"delivered"]', '"delivered", "lost"]'), ('"there"}', '"there", "lost": "nowhere"}'))},
    ),
    "deprecate": Change(
        ((TRACK, f"{TRACK}    stubwright: {{deprecated: {{since: 1.5.0, reason: Parcels are fast.}}}}\n"),),
        check=(),
        diff=("compatible: SW519 wire tool `track_parcel`: it is now deprecated",),
        breaks=False,
        version="a minor version, 1.4.0 → 1.5.0",
    ),
    "a-shared-schema": Change(
        ((ADDRESS, ADDRESS.replace("}}\n", "}, country: {type: string}}\n").replace("city]", "city, country]")),),
        check=(),
        diff=(
            "breaking: SW531 wire schema `Address`: a required property was added",
            (
                'for example {"speed": "express", "to": {"city": "a", "street": "a"}} was accepted and is now '
                "rejected; "
                "affects 2 places: tool `quote_price`, argument `Address.country`; tool `send_parcel`, argument "
                "`Address.country`"
            ),
            "breaking: SW587 python class `Address`: the attribute `country` was added",
            "typed callers that create one must set it",
        ),
        breaks=True,
        version="a major version, 1.4.0 → 2.0.0",
        mypy=('caller.py:7: error: Missing named argument "country" for "Address"  [call-arg]',),
        pytest="ValidationError: 1 validation error for Address",
        done={"caller.py": (('city="Paris"', 'city="Paris", country="France"'),)},
    ),
}


@dataclass(frozen=True)
class Told:
    """The reports on one change, except mypy's, and the output of `check --strict` and pytest after the fixes."""

    check: Run
    diff: Run
    pytest: Run
    check_when_done: Run
    pytest_when_done: Run


@dataclass(frozen=True)
class Life:
    """The reports on each change, and mypy's output for all copies."""

    told: Mapping[str, Told]
    mypy: str

    def mypy_errors(self, copy: str) -> list[str]:
        """Return mypy's errors for one copy, relative to its folder."""
        lines = re.findall(rf"^{copy}/(.* error: .*)$", self.mypy, re.MULTILINE)
        return sorted(line.replace(f"{copy}.parcels_mcp", "parcels_mcp") for line in lines)


def edit(folder: Path, edits: Edits) -> None:
    for name, replacements in edits.items():
        text = (folder / name).read_text()
        for old, new in replacements:
            assert old in text, f"{old!r} is not in {name}"
            text = text.replace(old, new)
        (folder / name).write_text(text)


def plant(project: Path, tree: Path, name: str) -> None:
    """Copy a project into a tree, where its modules and its package are below one folder; no line moves."""
    shutil.copytree(project / "generated" / "parcels_mcp", tree / name / "parcels_mcp")
    for module in MODULES:
        text = re.sub(r"^from (parcels|caller)", rf"from {name}.\1", (project / module).read_text(), flags=re.MULTILINE)
        (tree / name / module).write_text(text)


def identifier(name: str) -> str:
    return name.replace("-", "_")


def run_pytest(project: Path) -> Run:
    options = ["-p", "no:cacheprovider", "--tb=short"]
    return forked.python(["-m", "pytest", *options], project, path=[project / "generated", project], **forked.ALONE)


def go_through(name: str, before: Path, tree: Path) -> Told:
    """Make a change in a copy of the project, collect the reports, apply the fixes, and collect the reports again."""
    project = Path(shutil.copytree(before, before.with_name(name)))
    edit(project, {"parcels.yaml": CHANGES[name].made})
    checked = stubwright("check", cwd=project)
    compared = stubwright("diff", "../before/parcels.yaml", "parcels.yaml", cwd=project)
    assert stubwright("generate", cwd=project).returncode == 0
    tested = run_pytest(project)
    plant(project, tree, identifier(name))
    edit(project, CHANGES[name].done)
    plant(project, tree, f"{identifier(name)}_done")
    return Told(checked, compared, tested, stubwright("check", "--strict", cwd=project), run_pytest(project))


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory, mypy: list[str]) -> Life:
    folder = tmp_path_factory.mktemp("life")
    before, tree = folder / "before", folder / "tree"
    before.mkdir()
    for name, text in FILES.items():
        (before / name).write_text(text)
    generated = stubwright("generate", cwd=before)
    assert (generated.returncode, generated.stderr) == (0, "")
    with ThreadPoolExecutor(2) as pool:
        told = dict(zip(CHANGES, pool.map(lambda name: go_through(name, before, tree), CHANGES), strict=True))
    modules = [str(path.relative_to(tree)) for path in sorted(tree.glob("*/*.py"))]
    environment = {**os.environ, "MYPYPATH": str(tree)}
    command = [*mypy, "--explicit-package-bases", *modules]
    typed = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert f"(checked {2 * len(CHANGES) * len(MODULES)} source files)" in typed.stdout, typed.stdout + typed.stderr
    return Life(told, typed.stdout)


def findings(stderr: str) -> list[str]:
    """Return the findings of `check` and their remedies, without the lines that they are about."""
    return [line.strip() for line in stderr.splitlines() if re.match(r"\S+:\d+:\d+: |   help: ", line)]


def changes(stdout: str) -> list[str]:
    """Return the changes that `diff` lists, each with its class, and why; without places."""
    lines, title = [], ""
    for line in stdout.splitlines():
        if line.startswith("  SW"):
            lines.append(f"{title}: {' '.join(line.split())}")
        elif line.startswith("   "):
            lines += [] if line.strip().startswith(("at ", "was at ")) else [line.strip()]
        elif line:
            title = line
    return lines


@pytest.mark.parametrize("name", CHANGES)
def test_check_says_what_handlers_need(name: str, life: Life) -> None:
    told = life.told[name].check
    assert (told.returncode, tuple(findings(told.stderr))) == (0, CHANGES[name].check)


@pytest.mark.parametrize("name", CHANGES)
def test_diff_says_whom_it_breaks_and_what_to_do(name: str, life: Life) -> None:
    told = life.told[name].diff
    assert (told.stderr, tuple(changes(told.stdout))) == ("", CHANGES[name].diff)
    assert told.stdout.endswith(f"; suggested: {CHANGES[name].version} (the manifest has 1.4.0)\n")
    assert told.returncode == int(CHANGES[name].breaks)


@pytest.mark.parametrize("name", CHANGES)
def test_mypy_points_at_each_line_that_must_change(name: str, life: Life) -> None:
    assert tuple(life.mypy_errors(identifier(name))) == CHANGES[name].mypy, life.mypy


@pytest.mark.parametrize("name", CHANGES)
def test_pytest_fails_where_a_call_does(name: str, life: Life) -> None:
    told = life.told[name].pytest
    assert (told.returncode != 0) == bool(CHANGES[name].pytest), told.stdout
    assert CHANGES[name].pytest in told.stdout


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_said_is_enough(name: str, life: Life) -> None:
    told = life.told[name]
    assert (told.check_when_done.returncode, told.check_when_done.stderr) == (0, "")
    assert life.mypy_errors(f"{identifier(name)}_done") == []
    assert "1 passed" in told.pytest_when_done.stdout
