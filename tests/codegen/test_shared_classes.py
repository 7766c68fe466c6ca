"""Shared schemas as a person would write them: one class each, named enumerations and scalars, and mappings.

Tests generate a package, import it, call its server with its client, and run type checkers.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mcp.client import Client

import packages
from packages import tool

TICKET = {"$ref": "#/schemas/Ticket"}
SCHEMAS: dict[str, Any] = {
    "Status": {"enum": ["open", "closed"], "description": "What a ticket is."},
    "Level": {"enum": [1, 2, True, None]},
    "Person": {"type": "object", "properties": {"name": {"type": "string"}, "ticket": TICKET}, "required": ["name"]},
    "Ticket": {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "status": {"$ref": "#/schemas/Status"},
            "Person": {"$ref": "#/schemas/Person"},
            "note": {"type": "string"},
            "place": {"type": "object", "properties": {"room": {"type": "string"}}},
        },
        "required": ["id", "status"],
    },
    "Case": {"$ref": "#/schemas/Ticket"},
    "Counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    "Key": {"type": "string", "pattern": "^[a-z]+$", "description": "A key."},
    "Amount": {"type": ["integer", "number"], "minimum": 0},
    "AnyKey": {"$ref": "#/schemas/Key"},
    "Nothing": {"type": ["string", "null"]},
}
KEY = {"$ref": "#/schemas/Key"}
KEYED: dict[str, Any] = {
    "key": KEY,
    "told": {**KEY, "description": "Another."},
    "Key2": {**KEY, "maxLength": 2},
    "was": {"anyOf": [KEY, {"type": "null"}]},
    "either": {"anyOf": [KEY, {"type": "string", "minLength": 9}]},
    "key_or_amount": {"oneOf": [KEY, {"$ref": "#/schemas/Amount"}], "default": "a"},
    "keys": {"type": "array", "items": KEY, "default": ["a", "b"]},
    "pairs": {"type": "object", "additionalProperties": KEY, "default": {"a": "b"}},
    "pair": {"type": "array", "prefixItems": [KEY, {"$ref": "#/schemas/Status"}], "items": False, "minItems": 2},
    "lists": {
        "anyOf": [{"type": "array", "items": KEY}, {"type": "array", "items": {"type": "integer"}}],
        "default": [],
    },
    "amount": {"$ref": "#/schemas/Amount", "default": 1},
    "any_key": {"$ref": "#/schemas/AnyKey"},
    "nothing": {"$ref": "#/schemas/Nothing"},
    "anything": {"anyOf": [KEY, {}]},
}
LABEL = {"type": "object", "properties": KEYED, "required": ["key"]}
NEW = {"type": "object", **TICKET, "properties": {"url": {"type": "string"}}, "required": ["url", "note"]}
COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
TOOLS = [
    {"name": "create", "description": "x", "inputSchema": {"type": "object", **TICKET}, "outputSchema": TICKET},
    tool("get", {"id": {"type": "integer"}}, outputSchema={"$ref": "#/schemas/Case", "description": "A ticket."}),
    tool(
        "find",
        {
            "status": {"$ref": "#/schemas/Status"},
            "was": {"anyOf": [{"$ref": "#/schemas/Status"}, {"type": "null"}]},
            "levels": {"type": "array", "items": {"$ref": "#/schemas/Level"}},
        },
        outputSchema={"type": "object", "properties": {"found": {"type": "array", "items": TICKET}}},
    ),
    {"name": "extend", "description": "x", "inputSchema": NEW, "outputSchema": NEW},
    tool("count", outputSchema=COUNTS),
    tool("counts", outputSchema={"type": "object", "$ref": "#/schemas/Counts"}),
    tool("by_day", outputSchema={"$ref": "#/schemas/Counts"}),
    tool("stats", outputSchema={**COUNTS, "properties": {"total": {"type": "integer"}}, "required": ["total"]}),
    {"name": "label", "description": "x", "inputSchema": LABEL, "outputSchema": LABEL},
    tool(
        "keyed",
        outputSchema={"type": "object", "patternProperties": {"^x-": TICKET}, "additionalProperties": False},
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shared")
    packages.generate(made, packages.manifest(TOOLS, name="desk", schemas=SCHEMAS))
    return made


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[ModuleType]:
    with packages.imported(folder, "desk_mcp") as module:
        yield module


def test_a_root_that_is_a_shared_schema_is_its_class(desk: ModuleType) -> None:
    assert desk.CreateInput is desk.CreateOutput is desk.GetOutput is desk.Case is desk.Ticket
    assert desk.TOOLS["create"].Output is desk.Ticket
    assert desk.CountsOutput is desk.ByDayOutput is desk.Counts
    nested = desk.FindOutput.model_validate({"found": [{"id": 1, "status": "open"}]})
    assert type(nested.found[0]) is desk.Ticket


def test_one_that_adds_to_it_inherits_from_it(desk: ModuleType) -> None:
    assert desk.ExtendInput.__bases__ == desk.ExtendOutput.__bases__ == (desk.Ticket,)
    assert [*desk.ExtendOutput.__annotations__] == ["url"]
    data = {"id": 1, "status": "open", "url": "u", "note": "n", "place": {"room": "a", "more": None}}
    assert desk.ExtendOutput.model_validate(data).model_dump(mode="json") == data
    parameters = inspect.signature(desk.DeskClient.extend).parameters
    required = [name for name, each in parameters.items() if each.default is each.empty]
    assert required == ["self", "id", "status", "note", "url"]


def test_enumerations_have_names_and_values(desk: ModuleType) -> None:
    assert desk.STATUS_VALUES == ("open", "closed")
    assert [*map(repr, desk.LEVEL_VALUES)] == ["1", "2", "True", "None"]
    assert desk.FindInput.__annotations__["status"] == "Status | None"
    assert desk.FindInput.__annotations__["was"] == "Nullable[Status]"
    assert desk.FindInput.__annotations__["levels"] == "list[Level] | None"
    for name, value in (("status", "open"), ("was", None), ("levels", [1, True, None])):
        assert desk.FindInput.model_validate({name: value}).model_dump(mode="json") == {name: value}


def test_scalars_have_names(desk: ModuleType) -> None:
    assert (desk.Key, desk.Amount, desk.AnyKey) == (str, float, str)
    assert not hasattr(desk, "Nothing")
    assert desk.LabelInput.__annotations__ == {
        "key": "Key",
        "told": "Key | None",
        "Key2": "str | None",
        "was": "Nullable[Key]",
        "either": "str | None",
        "key_or_amount": "Key | Amount",
        "keys": "list[Key]",
        "pairs": "dict[str, Key]",
        "pair": "tuple[Key, Status] | None",
        "lists": "list[Key] | list[int]",
        "amount": "Amount",
        "any_key": "Key | None",
        "nothing": "Nullable[str]",
        "anything": "Nullable[str | Any]",
    }
    assert inspect.signature(desk.DeskClient.label).parameters["key"].annotation == "_models.Key"
    given = {"key": "a", "key_or_amount": 2, "keys": ["c"], "pair": ["a", "open"], "amount": 1.5, "any_key": "b"}
    assert desk.LabelInput.model_validate(given).model_dump(mode="json", exclude_unset=True) == given


def test_what_a_scalar_allows_is_said_with_its_type(folder: Path) -> None:
    models = folder / "desk_mcp" / "models"
    assert 'Key: TypeAlias = str\n"""A key. Pattern: `^[a-z]+$`."""' in (models / "shared" / "key.py").read_text()
    written = (models / "label.py").read_text()
    assert '    key: Key\n    """A key."""' in written
    assert '    told: Key | None = None\n    """Another."""' in written
    assert '"""A key. At most 2 characters. Pattern: `^[a-z]+$`."""' in written
    assert written.count("Pattern") == 2, "once in the arguments and once in the result, where the schema adds to it"
    assert "Each item" not in written


def test_texts_with_formats_have_names(tmp_path: Path) -> None:
    schemas = {
        "When": {"type": "string", "format": "date-time"},
        "File": {"type": "string", "contentEncoding": "base64"},
    }
    when = {"type": "object", "properties": {"When": {"$ref": "#/schemas/When"}, "at": {"$ref": "#/schemas/When"}}}
    tools = [
        tool("go", {"at": {"$ref": "#/schemas/When"}, "file": {"$ref": "#/schemas/File"}}, outputSchema=when),
        tool("see", {"in": when}),
    ]
    for formats, text in (("rich", "dt_datetime | str"), ("strict", "dt_datetime"), ("text", "str")):
        made = tmp_path / formats
        made.mkdir()
        source = packages.manifest(tools, name=f"when_{formats}", schemas=schemas, python={"formats": formats})
        packages.generate(made, source)
        with packages.imported(made, f"when_{formats}_mcp") as package:
            folder = made / package.__name__
            assert f"When: TypeAlias = {text}\n" in (folder / "models" / "shared" / "when.py").read_text()
            read = package.GoInput.model_validate({"at": "2026-01-31T10:00:00Z", "file": "aGk="})
            assert read.at == ("2026-01-31T10:00:00Z" if formats == "text" else datetime(2026, 1, 31, 10, tzinfo=UTC))
            assert read.file == ("aGk=" if formats == "text" else b"hi")
            assert read.model_dump(mode="json") == {"at": "2026-01-31T10:00:00Z", "file": "aGk="}
            inner = {"When": "2026-01-31T10:00:00Z", "at": "2026-01-31T10:00:00Z"}
            assert package.SeeInput.model_validate({"in": inner}).model_dump(mode="json") == {"in": inner}


def test_an_attribute_does_not_hide_a_class(desk: ModuleType) -> None:
    data = {"id": 1, "status": "open", "Person": {"name": "Ann", "ticket": {"id": 2, "status": "closed"}}}
    ticket = desk.Ticket.model_validate(data)
    assert type(ticket.Person_) is desk.Person
    assert type(ticket.Person_.ticket) is desk.Ticket
    assert ticket.model_dump(mode="json") == data


def test_a_root_map_is_a_mapping(desk: ModuleType) -> None:
    counts = desk.CountOutput({"a": 1})
    assert issubclass(desk.CountOutput, Mapping)
    assert (counts["a"], len(counts), [*counts], counts == {"a": 1}) == (1, 1, ["a"], True)
    counts["b"] = 2
    counts.update(c=3)
    del counts["a"]
    assert counts.model_dump(mode="json") == {"b": 2, "c": 3}
    with pytest.raises(ValueError, match="valid integer"):
        desk.CountOutput({"a": "x"})


def test_a_map_with_properties_has_both(desk: ModuleType) -> None:
    stats = desk.StatsOutput(total=2, a=1)
    stats["b"] = 1
    assert (stats.total, dict(stats), bool(desk.StatsOutput(total=0))) == (2, {"a": 1, "b": 1}, True)
    assert stats.model_dump(mode="json") == {"total": 2, "a": 1, "b": 1}
    with pytest.raises(KeyError, match="'total' is a field; set the attribute 'total'"):
        stats["total"] = 3
    keyed = desk.KeyedOutput.model_validate({"x-a": {"id": 1, "status": "open", "more": None}})
    assert type(keyed["x-a"]) is desk.Ticket
    assert keyed.model_dump(mode="json") == {"x-a": {"id": 1, "status": "open", "more": None}}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_handlers_and_clients_use_the_one_class(
    desk: ModuleType, mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ticket = desk.Ticket(id=1, status="open", place=desk.TicketPlace(room="a"))

    class Desk(desk.DeskHandlers):  # type: ignore[misc,name-defined]  # imported at run time
        def create(self, args: Any, ctx: Any) -> Any:
            assert type(args) is desk.Ticket
            return args

        def get(self, args: Any, ctx: Any) -> Any:
            return ticket

        def find(self, args: Any, ctx: Any) -> Any:
            return desk.FindOutput(found=[ticket])

        def extend(self, args: Any, ctx: Any) -> Any:
            return desk.ExtendOutput.model_validate(args.model_dump(mode="json")) if args.url == "u" else ticket

        def count(self, args: Any, ctx: Any) -> Any:
            return desk.CountOutput(a=1)

        def counts(self, args: Any, ctx: Any) -> Any:
            return desk.Counts(a=1)

        by_day = counts

        def stats(self, args: Any, ctx: Any) -> Any:
            return desk.StatsOutput(total=1, a=1)

        def label(self, args: Any, ctx: Any) -> Any:
            return args

        def keyed(self, args: Any, ctx: Any) -> Any:
            return {"x-a": {"id": 1, "status": "open"}}

    server = desk.build_server(Desk())
    async with desk.DeskClient.connect(server) as client:
        made = await client.create(id=1, status="open", place=desk.TicketPlace(room="a"))
        assert made == ticket
        assert await client.get(id=1) == ticket
        assert (await client.find(status="open")).found == [ticket]
        more = await client.extend(id=1, status="open", note="n", url="u")
        assert (type(more), more.url, more.note) == (desk.ExtendOutput, "u", "n")
        assert await client.count() == {"a": 1}
        assert await client.counts() == await client.by_day() == desk.Counts({"a": 1})
        assert (await client.stats())["a"] == 1
        assert (await client.keyed())["x-a"].status == "open"
    async with Client(server, mode=mode) as plain:
        result = await plain.call_tool("stats", {})
        assert result.structured_content == {"total": 1, "a": 1}
        wrong = await plain.call_tool("extend", {"id": 1, "status": "open", "note": "n", "url": "other"})
        assert wrong.is_error
    wanted = "expected ExtendOutput, the output class of the tool extend"
    assert f"extend returned a value of type Ticket; {wanted}" in caplog.text


USE = """
from collections.abc import Mapping
from desk_mcp import Amount, ByDayInput, Counts, CountsInput, Key, LabelInput, LabelOutput
from desk_mcp import CountOutput, Context, DeskClient, DeskHandlers, ExtendInput, ExtendOutput, FindInput
from desk_mcp import FindOutput, GetInput, KeyedInput, KeyedOutput, CountInput, StatsInput, StatsOutput, Status
from desk_mcp import STATUS_VALUES, Ticket, TicketPlace

TICKETS: dict[int, Ticket] = {}

class Desk(DeskHandlers):
    async def create(self, args: Ticket, ctx: Context) -> Ticket:
        TICKETS[args.id] = args
        return args
    def get(self, args: GetInput, ctx: Context) -> Ticket:
        return TICKETS[args.id or 0]
    def find(self, args: FindInput, ctx: Context) -> FindOutput:
        status: Status | None = args.status
        return FindOutput(found=[each for each in TICKETS.values() if each.status == status])
    def extend(self, args: ExtendInput, ctx: Context) -> ExtendOutput:
        ticket: Ticket = args
        return ExtendOutput(id=ticket.id, status=ticket.status, url=args.url)
    def count(self, args: CountInput, ctx: Context) -> CountOutput:
        return CountOutput({"a": 1})
    def counts(self, args: CountsInput, ctx: Context) -> Counts:
        return Counts({"a": 1})
    def by_day(self, args: ByDayInput, ctx: Context) -> Counts:
        return self.counts(CountsInput(), ctx)
    def stats(self, args: StatsInput, ctx: Context) -> StatsOutput:
        made = StatsOutput(total=1)
        made["a"] = 1
        return made
    def label(self, args: LabelInput, ctx: Context) -> LabelOutput:
        key: Key = args.key
        either: Key | Amount = args.key_or_amount
        return LabelOutput(key=key, was=args.was, key_or_amount=either, keys=[*args.keys, key], pairs={key: key})
    def keyed(self, args: KeyedInput, ctx: Context) -> KeyedOutput:
        return KeyedOutput({"x-a": Ticket(id=1, status=STATUS_VALUES[0])})

def total(counts: Mapping[str, int]) -> int:
    return sum(counts.values())

async def use(client: DeskClient, status: Status) -> None:
    ticket: Ticket = await client.create(id=1, status=status, place=TicketPlace(room="a"))
    assert total(await client.count()) == total(await client.stats())
    key: Key = "a"
    labelled = await client.label(key=key, key_or_amount=2.5, lists=[1], pair=(key, status))
    assert labelled.key == "a"
    for key, other in (await client.keyed()).items():
        assert key and other.id == ticket.id
"""


@pytest.mark.long
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_see_one_class(checker: str, folder: Path, mypy: list[str]) -> None:
    command = mypy if checker == "mypy" else [sys.executable, "-m", "pyright", f"--pythonpath={sys.executable}"]
    (folder / "use.py").write_text(USE)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    done = subprocess.run([*command, "use.py"], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
