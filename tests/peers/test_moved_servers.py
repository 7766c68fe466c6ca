"""Ported third-party servers list and answer the same; docs/importing.md has the rows."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import moved_servers
import wheels
from moved_servers import Installed, Published

pytestmark = pytest.mark.long

DOCUMENT = "{folder}/notes.docx"
WORKBOOK = "{folder}/sales.xlsx"

SERVERS = [
    Published(
        "calculator",
        "mcp-server-calculator",
        ("mcp-server-calculator",),
        "mcp_server_calculator/calculator.py",
        False,
        (
            ("calculate", {"expression": "2^10 + sqrt(2)"}),
            ("calculate", {"expression": "sin(pi / 6)"}),
            ("calculate", {"expression": "1 / 0"}),
        ),
        "nothing",
    ),
    Published(
        "word",
        "office-word-mcp-server",
        ("word_mcp_server",),
        "from word_document_server.main import mcp, register_tools\n\nregister_tools()\n",
        True,
        (
            ("create_document", {"filename": DOCUMENT, "title": "Notes"}),
            ("add_paragraph", {"filename": DOCUMENT, "text": "It moved."}),
            ("get_document_text", {"filename": DOCUMENT}),
            ("get_document_text", {"filename": "{folder}/missing.docx"}),
        ),
        "a two-line file that adds the tools to the server",
    ),
    Published(
        "excel",
        "excel-mcp-server",
        ("excel-mcp-server", "stdio"),
        "from excel_mcp.config import Settings\nfrom excel_mcp.server import create_server\n\n"
        "mcp = create_server(Settings())\n",
        True,
        (
            ("create_workbook", {"path": WORKBOOK, "sheets": ["May"]}),
            ("write_range", {"path": WORKBOOK, "sheet": "May", "at": "A1", "rows": [["tea", 3], ["jam", 4.5]]}),
            ("read_range", {"path": WORKBOOK, "sheet": "May"}),
            ("describe_workbook", {"path": WORKBOOK}),
            ("read_range", {"path": WORKBOOK, "sheet": "June"}),
        ),
        "a three-line file that creates the server",
    ),
]

WORD = SERVERS[1]
"""The server that depends on FastMCP."""

TALKS = """
import asyncio
from dataclasses import dataclass

from fastmcp import Context, FastMCP

mcp = FastMCP("talks")


@dataclass
class Seats:
    count: int


@mcp.tool
async def work(name: str, ctx: Context) -> str:
    await ctx.info(f"{name} begins")
    await ctx.report_progress(1, 2)
    await asyncio.sleep(0.05)
    await ctx.warning(f"{name} ends", extra={"days": 1})
    return name


@mcp.tool
async def book(ctx: Context) -> str:
    answer = await ctx.elicit("How many?", Seats)
    return f"{answer.action} {answer.data.count}"


@mcp.tool
async def remember(value: str, ctx: Context) -> None:
    await ctx.set_state("value", value)


@mcp.resource("talks://{place}")
async def there(place: str, ctx: Context) -> str:
    await ctx.info("to nobody")
    return place
"""

HEARD = """
import asyncio, json

import mcp
import mcp_types as types
from moved_mcp import build_server
from moved_server.handlers import Moved


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"count": 3})


async def main():
    heard = {"a": [], "b": []}
    server = build_server(Moved())

    def client(name):
        async def log(params):
            heard[name].append([params.level, params.data["msg"], params.data["extra"]])
        return mcp.Client(server, mode="legacy", logging_callback=log, elicitation_callback=elicit)

    async with client("a") as a, client("b") as b:
        await asyncio.gather(a.call_tool("work", {"name": "a"}), b.call_tool("work", {"name": "b"}))
        heard["answer"] = (await a.call_tool("book", {})).structured_content["result"]
        await b.read_resource("talks://home")
    print(json.dumps(heard))


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Our own wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    return [wheels.build(ROOT / "runtime", folder), wheels.build(ROOT, folder)]


def install(server: Published, ours: list[Path], folder: Path) -> Installed:
    """Install a published server in an environment of its own; the test is skipped if it cannot be had."""
    try:
        return moved_servers.install(server, ours, folder / "theirs")
    except moved_servers.NotThereError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: str(server.name))
def test_a_published_server_lists_and_answers_the_same_after_its_move(
    server: Published, ours: list[Path], tmp_path: Path
) -> None:
    installed = install(server, ours, tmp_path)
    done = installed.move(tmp_path)
    assert done.returncode == 0, done.stderr
    old_tools, old_results = installed.ask_old(tmp_path)
    new_tools, new_results = installed.ask_new(tmp_path)
    assert [*map(offered, new_tools)] == [*map(offered, old_tools)]
    assert [*map(answered, new_results)] == [*map(answered, old_results)]
    assert sum(not result["isError"] for result in old_results) >= 2

    row = (
        f"| `{server.distribution}` {installed.version} | {len(old_tools)} | {len(old_results)} | "
        f"{'shared' if server.is_shared else 'its own'} | {server.by_hand} |"
    )
    print(row)
    assert row in (ROOT / "docs" / "importing.md").read_text("utf-8")


def test_functions_of_fastmcp_log_and_ask_through_the_moved_server(ours: list[Path], tmp_path: Path) -> None:
    installed = install(replace(WORD, source=TALKS), ours, tmp_path)
    done = installed.move(tmp_path)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith("  - `")]
    assert [line.split(":")[0] for line in told] == ["  - `book`", "  - `remember`", "  - `there`"]
    assert installed.run_new(HEARD, tmp_path) == {
        "a": [["info", "a begins", None], ["warning", "a ends", {"days": 1}]],
        "b": [["info", "b begins", None], ["warning", "b ends", {"days": 1}]],
        "answer": "accept 3",
    }


def offered(tool: Any) -> Any:
    """Return the parts of a tool that models and clients see."""
    keys = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    return {key: tool.get(key) for key in keys}


def answered(result: Any) -> Any:
    """Return a tool's result without the text mirror of structured content, which is now its JSON."""
    structured = result["structuredContent"]
    return {"isError": result["isError"], "is": result["content"] if structured is None else structured}
