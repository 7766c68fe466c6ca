"""The committed help desk of `specs/helpdesk.yaml`: the same structured results for every client.

The clients are the generated client, in memory; the SDK's, over stdio and HTTP, in both eras; the Inspector; and
FastMCP's, if it is installed.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import mcp
import mcp_types as types
import pytest
from conftest import ROOT

import amounts
import conformance
import desk_calls
import forked
import inspector
from packages import imported
from serving import asgi

pytestmark = pytest.mark.anyio

ERAS = ("2025-06-18", "2026-07-28")
PATH = os.pathsep.join(map(str, conformance.paths()))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def desk() -> Iterator[ModuleType]:
    """Generate the package with its handlers."""
    with imported(ROOT / "generated", "helpdesk_mcp") as package, imported(ROOT / "examples", "helpdesk"):
        yield package


def handlers() -> Any:
    """Return new handlers with a separate database."""
    return importlib.import_module("helpdesk").Helpdesk()


@pytest.fixture
def revisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK's client shake hands for 2025-06-18, and not for the newest revision that has a handshake."""
    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", "2025-06-18")


class User:
    """Who answers questions: with a function of a form's schema, or an action alone."""

    def __init__(self, answer: Any = desk_calls.fill_form) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.asked.append(params.message)
        if isinstance(self.answer, str):
            return types.ElicitResult.model_validate({"action": self.answer})
        return types.ElicitResult(action="accept", content=self.answer(params.requested_schema))


def server() -> list[str]:
    """The command of the server."""
    return [*forked.interpreter(), "-m", "helpdesk_mcp"]


def stdio() -> Any:
    """The server as a process."""
    command, *arguments = server()
    return mcp.StdioServerParameters(command=command, args=arguments, env={**os.environ, "PYTHONPATH": PATH})


@asynccontextmanager
async def connected(target: Any, era: str, user: User | None) -> AsyncIterator[mcp.Client]:
    mode = era if era == "2026-07-28" else "legacy"
    async with mcp.Client(target, mode=mode, elicitation_callback=user) as client:
        assert client.session.protocol_version == era
        yield client


async def results(client: mcp.Client) -> list[Any]:
    """What each call gives."""
    made = []
    for name, arguments in desk_calls.CALLS:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result.content
        made.append(desk_calls.normalize(result.structured_content))
    return made


@pytest.fixture(scope="module")
async def wanted(desk: ModuleType) -> list[Any]:
    """What each call gives to the generated client."""

    async def answer(question: Any) -> dict[str, Any]:
        return desk_calls.fill_form(question.schema)

    async with desk.HelpdeskClient.connect(desk.build_server(handlers()), on_question=answer) as client:
        made = [await getattr(client, name)(**arguments) for name, arguments in desk_calls.CALLS]
    return [desk_calls.normalize(model.model_dump(mode="json")) for model in made]


async def test_the_calls_do_what_they_say(wanted: list[Any]) -> None:
    found = dict(zip((name for name, _ in desk_calls.CALLS), wanted, strict=True))  # the last of each name
    first, second = wanted[2:4]
    assert [[ticket["id"] for ticket in page["tickets"]] for page in (first, second)] == [[1, 2], [3]]
    assert (first["next_cursor"], second["next_cursor"]) == ("2", None)
    assert found["add_comment"] == {"author": desk_calls.LIN, "at": "now", "text": "It is bad."}
    assert found["attach_file"]["size"] == len(desk_calls.PHOTO)
    assert found["close_ticket"]["resolution"] == desk_calls.ANSWERS["resolution"]
    [ticket] = found["list_tickets"]["tickets"]
    assert ticket["comments"] == [found["add_comment"]]
    assert ticket["attachments"] == [found["attach_file"]]
    assert found["get_statistics"] == {
        "total": 4,
        "by_status": {"closed": 2, "open": 2},
        "by_priority": {"high": {"closed": 1}, "normal": {"closed": 1, "open": 1}, "urgent": {"open": 1}},
        "by_assignee": {
            "sam@example.com": {"name": "Sam", "oldest": "2026-07-27T09:30:00Z", "by_status": {"closed": 1}},
            "lin@example.com": {"name": "Lin", "oldest": "2026-07-28T07:45:00Z", "by_status": {"open": 1}},
        },
    }


def test_the_lines_that_are_told_are_those_there_are() -> None:
    spec = importlib.util.spec_from_file_location("lines", ROOT / "bench" / "lines.py")
    assert spec is not None
    assert spec.loader is not None
    lines = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lines)
    files = ("specs/helpdesk.yaml", "examples/helpdesk.py", "bench/helpdesk_fastmcp.py")
    manifest, code, theirs = (lines.count(ROOT / file) for file in files)
    ours = manifest + code
    bench, examples = (
        " ".join((ROOT / folder / "README.md").read_text("utf-8").split()) for folder in ("bench", "examples")
    )
    assert f"({ours}: {manifest} of YAML, {code} of Python; {theirs})" in bench
    assert f"takes {ours} lines, manifest included. With FastMCP the same server takes {theirs} lines" in examples
    assert ours <= theirs


async def test_values_have_types(desk: ModuleType) -> None:
    async with desk.HelpdeskClient.connect(desk.build_server(handlers())) as client:
        lin = desk.Person(**desk_calls.LIN)
        made = await client.create_ticket(subject="No coffee", description="Since eight.", reporter=lin)
        assert type(made) is desk.Ticket is desk.CreateTicketOutput
        assert (made.id, made.reporter, made.priority) == (4, lin, "normal")
        assert abs(datetime.now(UTC) - made.created).total_seconds() < 60
        assert made.status in desk.STATUS_VALUES
        file = await client.attach_file(id=4, name="photo.png", content=desk_calls.PHOTO)
        [contents] = await client.read_attachment(id="4", name="photo.png")
        assert base64.b64decode(contents.blob) == desk_calls.PHOTO
        assert (str(file.uri), contents.mime_type) == (contents.uri, "application/octet-stream")
        [contents] = await client.read_ticket(id="4")
        assert desk.Ticket.model_validate_json(contents.text).attachments == [file]
        assert (await client.complete_read_ticket("id", "")).values == ["1", "2", "3", "4"]
        assert (await client.complete_prompt_draft_reply("tone", "fo")).values == ["formal"]
        ask, ticket = await client.prompt_draft_reply(id="2", tone="formal")
        assert ask.content.text == "Draft a formal answer to Lin."
        assert json.loads(ticket.content.resource.text)["subject"] == "No sound in room 4"
        with pytest.raises(desk.ToolFailed, match="There is no ticket 99"):
            await client.get_ticket(id=99)


async def test_what_a_file_keeps(desk: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELPDESK_DB", str(tmp_path / "desk.sqlite"))
    for expected in (4, 5):
        async with desk.HelpdeskClient.connect(desk.build_server(handlers())) as client:
            made = await client.create_ticket(subject="x", description="x", reporter=desk_calls.LIN)
            assert made.id == expected


@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
async def test_over_stdio(era: str, wanted: list[Any], revisions: None) -> None:
    async with connected(stdio(), era, User()) as client:
        assert await results(client) == wanted


@pytest.mark.parametrize("era", amounts.sample(ERAS, 1))
async def test_over_http(era: str, desk: ModuleType, wanted: list[Any], revisions: None) -> None:
    with asgi(desk.asgi_app(handlers())) as url:
        async with connected(f"{url}/mcp", era, User()) as client:
            assert await results(client) == wanted
            listed = (await client.list_tools()).tools
            contents = (await client.read_resource("desk://tickets/4/attachments/photo.png")).contents
            made = await client.call_tool("create_ticket", desk_calls.CALLS[4][1])
    assert [tool.name for tool in listed if tool.output_schema is None] == []
    assert [(one.mime_type, one.blob) for one in contents if isinstance(one, types.BlobResourceContents)] == [
        ("image/png", base64.b64encode(desk_calls.PHOTO).decode())
    ]
    assert [str(block.uri) for block in made.content if isinstance(block, types.ResourceLink)] == ["desk://tickets/5"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answers", "asked", "said"),
    [
        (desk_calls.fill_form, ["Close ticket 2?", "How was it solved?"], None),
        ("decline", ["Close ticket 2?"], "The user declined: close_ticket did not run."),
        (lambda form: {"confirm": False}, ["Close ticket 2?"], "The user declined: close_ticket did not run."),
    ],
)
async def test_closing_asks(
    era: str, answers: Any, asked: list[str], said: str | None, desk: ModuleType, revisions: None
) -> None:
    user = User(answers)
    with asgi(desk.asgi_app(handlers())) as url:
        async with connected(f"{url}/mcp", era, user) as client:
            result = await client.call_tool("close_ticket", {"id": 2})
            ticket = (await client.call_tool("get_ticket", {"id": 2})).structured_content
    assert user.asked == asked
    assert (result.is_error or None) is (None if said is None else True)
    assert ticket is not None
    assert ticket["status"] == ("closed" if said is None else "waiting")
    if said is not None:
        assert [block.text for block in result.content if isinstance(block, types.TextContent)] == [said]


@pytest.mark.parametrize("era", ERAS)
async def test_who_does_not_say_the_resolution_closes_nothing(era: str, desk: ModuleType, revisions: None) -> None:
    class Silent(User):
        async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
            self.answer = "cancel" if self.asked else desk_calls.fill_form
            return await super().__call__(context, params)

    with asgi(desk.asgi_app(handlers())) as url:
        async with connected(f"{url}/mcp", era, Silent()) as client:
            result = await client.call_tool("close_ticket", {"id": 2})
    assert result.is_error
    assert "Ticket 2 stays open: nobody said how it was solved." in str(result.content)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_closes_nothing(era: str, desk: ModuleType, revisions: None) -> None:
    with asgi(desk.asgi_app(handlers())) as url:
        async with connected(f"{url}/mcp", era, None) as client:
            if era == "2026-07-28":
                with pytest.raises(mcp.MCPError, match="close_ticket requires") as refused:
                    await client.call_tool("close_ticket", {"id": 2, "resolution": "x"})
                assert refused.value.error.code == -32021
            else:
                result = await client.call_tool("close_ticket", {"id": 2, "resolution": "x"})
                assert result.is_error
                assert result.structured_content is None
                assert "close_ticket" in str(result.content)
            ticket = (await client.call_tool("get_ticket", {"id": 2})).structured_content
    assert ticket is not None
    assert ticket["status"] == "waiting"


@pytest.mark.long
async def test_with_the_inspector(wanted: list[Any]) -> None:
    try:
        inspect = inspector.fetch()
    except inspector.NotThereError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    for era, (name, arguments), expected in zip(
        ("legacy", "modern", "legacy"), desk_calls.READING, wanted, strict=False
    ):
        asked = ["--tool-name", name, "--tool-args-json", json.dumps(arguments), "--protocol-era", era]
        result = inspect.ask(server(), conformance.paths(), "--method", "tools/call", *asked)
        assert desk_calls.normalize(result["structuredContent"]) == expected


@pytest.mark.long
async def test_with_the_client_of_fastmcp(wanted: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    peers = importlib.import_module("peers")
    if os.environ.get("CI") != "true" and not peers.has_fastmcp():
        pytest.skip("FastMCP is not installed: `python bench/helpdesk.py` makes an environment with it")
    try:
        python = await anyio.to_thread.run_sync(peers.fastmcp)
    except peers.NotThereError as error:
        pytest.skip(str(error))
    asked = {
        "command": server(),
        "env": {"PYTHONPATH": PATH},
        "calls": desk_calls.CALLS,
        "answers": desk_calls.ANSWERS,
    }
    command = [str(python), str(ROOT / "bench" / "fastmcp_client.py")]
    with anyio.fail_after(120):
        done = await anyio.run_process(command, input=json.dumps(asked).encode(), check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert [desk_calls.normalize(result) for result in json.loads(done.stdout)] == wanted
