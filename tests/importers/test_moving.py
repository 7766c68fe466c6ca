"""`stubwright new NAME --from python FILE:NAME` ports a server object; the new server gives the same answers."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import amounts
import forked
from command_line import stubwright
from stubwright.commands.importing import from_python
from terminals import Terminal

BOOKS = '''
from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel

from shelf import SHELF

print("what a file prints is not the protocol's")


@asynccontextmanager
async def opened(server: MCPServer[Any]) -> AsyncIterator[None]:
    SHELF["Opened"] = 2000
    yield


mcp = MCPServer("books", version="1.2", instructions="Ask for books.", lifespan=opened)


class Book(BaseModel):
    title: str
    year: int = 1900


@mcp.tool()
def count_books() -> int:
    """Count."""
    return len(SHELF)


@mcp.tool()
async def add_book(book: Book, note: str | None = None) -> Book:
    """Add."""
    SHELF[book.title] = book.year
    return book


@mcp.tool()
def forget(title: str) -> None:
    """Forget."""
    SHELF.pop(title, None)


@mcp.tool()
def repeat(title: str, times: int = 2) -> list[str]:
    """Repeat."""
    return [title] * times


@mcp.tool()
def find(title: str) -> str:
    """Find."""
    if title not in SHELF:
        raise mcp_error(f"There is no {title}.")
    return str(SHELF[title])


@mcp.tool()
async def read_slowly(steps: int, ctx: Context) -> dict[str, int]:
    """Read."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"page {step + 1}")
    return {"steps": steps, "process": os.getpid()}


@mcp.tool(structured_output=False)
def draw(title: str):
    """Draw."""
    return [f"The cover of {title}:", Image(data=b"PNG", format="png")]


def mcp_error(text: str) -> Exception:
    from mcp.server.mcpserver.exceptions import ToolError

    return ToolError(text)


@mcp.resource("books://all", mime_type="text/csv")
def everything() -> str:
    return ", ".join(SHELF)


@mcp.resource("books://{title}/year")
def year(title: str) -> str:
    return f"{title}: 1815"


@mcp.prompt()
def review(title: str, tone: str = "kind") -> str:
    return f"Review {title}, be {tone}."


if __name__ == "__main__":
    mcp.run()
'''

COMPARED = """
import importlib, json, os, sys
from pathlib import Path

import anyio
import mcp

from moved_mcp import MovedClient, ToolFailed, build_server
from moved_server.handlers import Moved

sys.path.insert(0, sys.argv[1])
CALLS = [
    ("count_books", {}),
    ("add_book", {"book": {"title": "Emma"}}),
    ("add_book", {"book": {"title": "Emma", "year": 1815}, "note": None}),
    ("forget", {"title": "Emma"}),
    ("repeat", {"title": "Emma"}),
    ("repeat", {"title": "Emma", "times": 1}),
    ("find", {"title": "Opened"}),
    ("find", {"title": "Nothing"}),
    ("draw", {"title": "Emma"}),
]


def json_of(value):
    return [json_of(each) for each in value] if isinstance(value, list) else value.model_dump(mode="json")


async def ask(old):
    answers = {"old": [], "new": []}
    async with old, MovedClient.connect(build_server(Moved()), raise_errors=True) as new:
        for name, arguments in CALLS:
            result = await old.call_tool(name, arguments)
            said = "".join(block.text for block in result.content if block.type == "text")
            expected = result.structured_content if result.structured_content is not None else json_of(result.content)
            answers["old"].append(said if result.is_error else expected)
            try:
                answers["new"].append(json_of(await getattr(new, name)(**arguments)))
            except ToolFailed as error:
                answers["new"].append(str(error))
        reads = {"books://all": new.read_everything(), "books://a%20b%2Fc/year": new.read_year(title="a b/c")}
        for uri, read in reads.items():
            answers["old"].append(json_of((await old.read_resource(uri)).contents)[0])
            answers["new"].append(json_of(await read)[0])
        for arguments in ({"title": "Emma"}, {"title": "Emma", "tone": "short"}):
            answers["old"].append(json_of((await old.get_prompt("review", arguments)).messages))
            answers["new"].append(json_of(await new.prompt_review(**arguments)))
        progress = []
        told = new.with_options(on_progress=lambda *told: progress.append([told[0], told[1], told[2]]))
        read = await told.read_slowly(steps=3)
        answers["progress"] = progress
        answers["is_shared"] = json_of(read)["process"] == os.getpid()
    print(json.dumps(answers))


sys.path.append(os.path.join(sys.argv[1], *sys.argv[2].split(".")[:-1]))
server = importlib.import_module(sys.argv[2]).mcp
anyio.run(ask, mcp.Client(server))
"""

TALKING = """
from __future__ import annotations

import asyncio

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel

mcp = MCPServer("talks")


class Seats(BaseModel):
    count: int


@mcp.tool()
async def work(name: str, ctx: Context) -> str:
    await ctx.info(f"{name} begins")
    await ctx.report_progress(1, 2)
    await asyncio.sleep(0.05)
    await ctx.log("warning", {"name": name}, logger_name="bench")
    await ctx.debug(f"{name} ends")
    return name


@mcp.tool()
async def chatter(ctx: Context) -> None:
    for number in range(100_000):
        await ctx.info("chatter")
        await asyncio.sleep(0)


@mcp.tool()
async def book(ctx: Context) -> str:
    answer = await ctx.elicit("How many?", Seats)
    return f"{answer.action} {answer.data.count}" if answer.action == "accept" else answer.action


@mcp.tool()
async def ponder(subject: str, ctx: Context) -> str:
    text = TextContent(type="text", text=subject)
    message = await ctx.session.create_message(messages=[SamplingMessage(role="user", content=text)], max_tokens=9)
    return message.content.text


@mcp.tool()
async def browse(ctx: Context) -> list[str]:
    return [str(root.uri) for root in (await ctx.session.list_roots()).roots]


@mcp.tool()
async def follow(ctx: Context) -> str:
    return await helper(ctx)


async def helper(ctx: Context) -> str:
    await ctx.error("from below")
    return ctx.request_id and "followed"


@mcp.tool()
def describe(ctx: Context) -> str:
    return str(ctx.headers)


@mcp.resource("talks://{place}")
async def there(place: str, ctx: Context) -> str:
    await ctx.info("to nobody")
    return place
"""

TALKED = """
import json, sys

import anyio
import mcp
import mcp_types as types

from moved_mcp import build_server
from moved_server.handlers import Moved


async def elicit(context, params):
    assert params.requested_schema["properties"]["count"]["type"] == "integer"
    return types.ElicitResult(action="accept", content={"count": 3})


async def sample(context, params):
    said = types.TextContent(type="text", text=f"about {params.messages[0].content.text}")
    return types.CreateMessageResult(role="assistant", content=said, model="m")


async def list_roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///home")])


async def answer(client, name, arguments):
    try:
        result = await client.call_tool(name, arguments)
    except mcp.MCPError as error:  # as the SDK passes on what a question's answer was
        return error.message
    return result.structured_content["result"]


async def ask(mode):
    said = {"log": [], "other": [], "answers": []}
    async def log(params):
        if params.data != "chatter":
            said["log"].append([params.level, params.data, params.logger])
    async def other(params):
        said["other"].append(params.data)
    answering = dict(elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=list_roots)
    server = build_server(Moved())
    opened = mcp.Client(server, mode=mode, logging_callback=log, log_level="debug", **answering)
    # An application has one server for all; its callers share the old one.
    async with opened as one, mcp.Client(server, mode=mode, logging_callback=other, log_level="info") as two:
        async with anyio.create_task_group() as group:
            group.start_soon(one.call_tool, "work", {"name": "a"})
            group.start_soon(two.call_tool, "work", {"name": "b"})
        with anyio.move_on_after(0.2):
            await one.call_tool("chatter", {})
        await two.call_tool("work", {"name": "c"})
        for name, arguments in CALLS:
            said["answers"].append(await answer(one, name, arguments))
        said["refused"] = await answer(two, "book", {})
        said["read"] = (await one.read_resource("talks://now")).contents[0].text
    print(json.dumps(said))


CALLS = [("book", {}), ("ponder", {"subject": "tea"}), ("browse", {}), ("follow", {}), ("describe", {})]
anyio.run(ask, sys.argv[1])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a server, and a module that it needs."""
    old = tmp_path / "old"
    old.mkdir()
    (old / "books.py").write_text(BOOKS)
    (old / "shelf.py").write_text('SHELF = {"Persuasion": 1817}\n')
    return tmp_path


def move(folder: Path, source: str = "old/books.py:mcp", *options: str, python: str | None = None) -> Any:
    """Move a server that runs in our environment, unless `python` is an interpreter of another one."""
    ours = python or str(forked.interpreter_in(folder))
    return stubwright("new", "moved", "--from", "python", source, "--yes", *options, "--", ours, cwd=folder)


TOP = "from pydantic import BaseModel\n"
NEAR = f"{TOP}import near  # beside the file, as a program's folder is on its path\n"


def compare(folder: Path, module: str = "books") -> dict[str, Any]:
    """Return what the old server and the new one answer."""
    path = [folder / "moved", folder / "moved" / "generated"]
    asked = forked.python(["-c", COMPARED, str(folder / "old"), module], folder, path)
    assert asked.returncode == 0, asked.stderr
    answers: dict[str, Any] = json.loads(asked.stdout.splitlines()[-1])
    return answers


def find_mistyped(folder: Path, mypy: list[str]) -> str:
    """Return what mypy says about the handwritten part of the new project; nothing if it is right."""
    path = [folder / "moved", folder / "moved" / "generated"]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run(
        [*mypy, "moved_server"], cwd=path[0], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode else ""


def foreign_python(folder: Path) -> str:
    """Return the interpreter of an environment of its own, which has our packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "theirs"], check=True)
    [site] = (folder / "theirs" / "lib").glob("*/site-packages")
    (site / "ours.pth").write_text(sysconfig.get_path("purelib"))
    return str(folder / "theirs" / "bin" / "python")


ELSEWHERE = """
import os, runpy, sys
sys.prefix = {prefix!r}
sys.argv = [word for word in sys.argv[1:] if word != "-P"]
if sys.argv[0] == "-c":
    exec(sys.argv.pop(1), {{"__name__": "__main__"}})
else:
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def forked_python(folder: Path) -> str:
    """Return an interpreter that takes another environment for its own, and is forked."""
    program = folder / "elsewhere"
    words = [*forked.interpreter(), "-c", ELSEWHERE.format(prefix=str(folder))]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o755)
    return str(program)


# --- what comes out ------------------------------------------------------------------------------------------------


def test_the_new_server_answers_as_the_old_one_did(folder: Path) -> None:
    python = str(forked.interpreter_in(folder))
    done = move(folder, python=python)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"running `{folder}/old/books.py` with `{python}`to read its server's lists",
        "books 1.2 (MCP 2026-07-28): 7 tools, 1 resource, 1 resource template, 1 prompt",
    ]
    assert "in the new server's process" in done.stdout
    assert "`read_slowly`" not in done.stdout, "its progress moves, and it uses nothing else"
    answers = compare(folder)
    assert len(answers["new"]) == 13
    assert answers["new"] == answers["old"]
    assert answers["new"][7] == "Error executing tool find: There is no Nothing."
    assert answers["progress"] == [[1, 3, "page 1"], [2, 3, "page 2"], [3, 3, "page 3"]]
    assert answers["is_shared"]


@pytest.mark.long
def test_the_new_project_is_fresh_typed_and_tested(folder: Path, mypy: list[str]) -> None:
    assert move(folder).returncode == 0
    project = folder / "moved"
    assert stubwright("generate", "--check", cwd=project).returncode == 0
    checked = stubwright("check", "--strict", cwd=project)
    assert checked.returncode == 0, checked.stderr
    path = [project, project / "generated"]
    assert find_mistyped(folder, mypy) == ""
    tested = forked.python(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio"], project, path, **forked.ALONE
    )
    assert "1 passed" in tested.stdout, tested.stdout + tested.stderr


@pytest.mark.long
@pytest.mark.parametrize("find", [forked_python, foreign_python])
def test_a_server_of_another_environment_answers_from_its_own_process(
    find: Callable[[Path], str], folder: Path
) -> None:
    python = find(folder)
    done = move(folder, python=python)
    assert done.returncode == 0, done.stderr
    assert f"in a separate process, with {python}." in done.stdout
    answers = compare(folder)
    assert answers["new"] == answers["old"]
    assert answers["progress"] == [[1, 3, "page 1"], [2, 3, "page 2"], [3, 3, "page 3"]]
    assert not answers["is_shared"]


@pytest.mark.long
@pytest.mark.parametrize("is_shared", [True, False])
def test_what_functions_say_and_ask_reaches_the_caller(folder: Path, is_shared: bool, mypy: list[str]) -> None:
    (folder / "old" / "talks.py").write_text(TALKING)
    done = move(folder, "old/talks.py", python=None if is_shared else foreign_python(folder))
    assert done.returncode == 0, done.stderr
    assert find_mistyped(folder, mypy) == ""
    path = [folder / "moved", folder / "moved" / "generated"]

    def talk(mode: str) -> Any:
        asked = forked.python(["-c", TALKED, mode], folder, path)
        assert asked.returncode == 0, asked.stderr
        return json.loads(asked.stdout)

    said = talk("legacy")
    of_one = [["info", "a begins", None], ["warning", {"name": "a"}, "bench"]]
    assert said["log"] == [*of_one, ["error", "from below", None]], "`debug` was not asked for"
    assert said["other"] == ["b begins", {"name": "b"}, "c begins", {"name": "c"}]
    assert said["answers"] == ["accept 3", "about tea", ["file:///home"], "followed", "None"]
    assert said["refused"] == "This request requires a client with the capability 'elicitation'"
    assert said["read"] == "now"

    said = talk("2026-07-28")
    assert said["log"] == [of_one[0], of_one[1], ["debug", "a ends", None], ["error", "from below", None]]
    assert said["other"] == ["b begins", {"name": "b"}, "c begins", {"name": "c"}]
    why = "The function asks a question during a call, which MCP 2026-07-28 does not support."
    assert said["answers"] == [why, why, why, "followed", "None"]


def test_what_changes_for_functions_with_a_context_is_said(folder: Path) -> None:
    (folder / "old" / "talks.py").write_text(TALKING)
    done = move(folder, "old/talks.py")
    told = [line for line in done.stdout.splitlines() if line.startswith("  - `")]
    through = "only logs, progress and questions reach the caller"
    old = "as before, works in MCP 2025-11-25 and earlier, but fails for newer callers"
    assert told == [
        f"  - `book`: `elicit`: {old}; use questions under `ask`",
        f"  - `ponder`, `browse`: `session`: belongs to the connection between the two servers; {through}",
        f"  - `follow`: passes its Context to code that was not analyzed: {through}",
        "  - `describe`: `headers`: there is no HTTP request; use `ctx.principal`",
        "  - `there`: resources and prompts log to the server's own log and cannot ask questions",
    ]
    handlers = (folder / "moved" / "moved_server" / "handlers.py").read_text()
    assert "        # `headers`: there is no HTTP request; use `ctx.principal`\n        return" in handlers
    assert "-> Reply[WorkOutput]:\n        return" in handlers, "a function that only logs moves as it is"


@pytest.mark.long
def test_a_missing_resource_stays_missing(folder: Path) -> None:
    (folder / "old" / "books.py").write_text(
        "from mcp.server.mcpserver import MCPServer\n"
        "from mcp.server.mcpserver.exceptions import ResourceNotFoundError\n"
        "server = MCPServer('books')\n"
        "@server.resource('books://{title}')\n"
        "def read(title: str) -> str:\n"
        "    raise ResourceNotFoundError(f'no {title}')\n"
    )
    done = move(folder, "old/books.py")
    assert done.returncode == 0, done.stderr
    script = (
        "import anyio, mcp\n"
        "from moved_mcp import build_server\n"
        "from moved_server.handlers import Moved\n"
        "async def ask():\n"
        "    async with mcp.Client(build_server(Moved())) as client:\n"
        "        try:\n"
        "            await client.read_resource('books://Emma')\n"
        "        except mcp.MCPError as error:\n"
        "            print(error.code, error.message)\n"
        "anyio.run(ask)\n"
    )
    asked = forked.python(["-c", script], folder, [folder / "moved", folder / "moved" / "generated"])
    assert asked.stdout == "-32602 no Emma\n", asked.stderr


def test_what_does_not_move_is_said(folder: Path) -> None:
    (folder / "old" / "books.py").write_text(
        "from mcp.server.auth.settings import AuthSettings\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "settings = AuthSettings(issuer_url='https://example.com', resource_server_url='https://example.com/mcp')\n"
        "app = MCPServer('books', auth=settings, token_verifier=object())\n"
        "@app.completion()\n"
        "async def complete(ref, argument, context):\n"
        "    return None\n"
        "@app.prompt()\n"
        "def ask(title: str) -> str:\n"
        "    return title\n"
    )
    done = move(folder, "old/books.py")
    assert done.returncode == 0, done.stderr
    assert "  - its authentication: declare `auth` in the manifest\n" in done.stdout
    assert "  - its completions: declare `complete` in the manifest\n" in done.stdout
    assert "Context" not in done.stdout


# --- what goes wrong -----------------------------------------------------------------------------------------------

_EMPTY = "from mcp.server.mcpserver import MCPServer\n"
_TRACEBACK = """`{folder}/app.py` cannot be imported:
  |   File "{folder}/app.py", line 4, in <module>
  |     connect()
  |   File "{folder}/app.py", line 2, in connect
  |     raise ValueError('no database')
  | ValueError: no database
"""


@pytest.mark.parametrize(
    ("text", "source", "status", "said"),
    amounts.sample(
        [
            ("", "missing.py:mcp", 2, "there is no file `missing.py`"),
            ("", "app", 2, "`app` does not name a server object in a Python file, such as app.py:mcp"),
            ("", "app.py", 1, "name the server in `{folder}/app.py`, as in app.py:NAME; it has no server object"),
            (
                f"{_EMPTY}a = MCPServer('a')\nb = MCPServer('b')\n",
                "app.py",
                1,
                "name the server in `{folder}/app.py`, as in app.py:NAME; it has the server objects `a`, `b`",
            ),
            (
                f"{_EMPTY}books = MCPServer('a')\n",
                "app.py:mcp",
                1,
                "`{folder}/app.py` has no `mcp`; it has the server objects `books`",
            ),
            (
                "mcp = []\n",
                "app.py:mcp",
                1,
                "`{folder}/app.py:mcp` is of type `list`, not FastMCP or MCPServer; it has no server object",
            ),
            (
                "def connect():\n    raise ValueError('no database')\n\nconnect()\n",
                "app.py:mcp",
                1,
                _TRACEBACK,
            ),
            ("def mcp(:\n", "app.py:mcp", 1, "  | SyntaxError: "),
            (
                "import os\nos.environ['BOOKS_KEY']\n",
                "app.py:mcp",
                1,
                "  help: the command did not inherit BOOKS_KEY, which is set here; pass it with --env BOOKS_KEY\n",
            ),
            ("import sys\nsys.exit('not today')\n", "app.py:mcp", 1, "  | SystemExit: not today\n"),
            (
                f"{_EMPTY}mcp = MCPServer('empty')\n",
                "app.py:mcp",
                1,
                "`{folder}/app.py:mcp` has no tools, resources or prompts",
            ),
            ("", "json.py:mcp", 1, "rename this file"),
            (
                f"{_EMPTY}mcp = MCPServer('a')\nmcp.run()\n",
                "app.py",
                1,
                "within 1 s; does the file call `run()` outside of",
            ),
        ],
        1,
    ),
)
def test_what_cannot_move_says_why_and_leaves_nothing(
    text: str, source: str, status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOKS_KEY", "secret")
    for name in ("app.py", "json.py"):
        (tmp_path / name).write_text(text)
    done = move(tmp_path, source, "--timeout", "1" if said.startswith("within") else "60")
    assert (done.returncode, done.stdout) == (status, "")
    unmarked = re.sub(r"\n  \| +[~^]+(?=\n)", "", done.stderr)  # Python marks more or fewer places, as the version is
    assert said.format(folder=tmp_path) in unmarked
    assert not (tmp_path / "moved").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "python"], "--from python requires a file and the name of its server object, such as app.py:mcp"),
        (["--from", "python", "old/books.py:mcp"], "add --yes to allow it"),
        (["--from", "python", "old/books.py:mcp", "--yes", "--"], "the command after `--` is empty"),
        (["--from", "python", "old/books.py:mcp", "--header", "A: b"], "--header and --token are for --from mcp URL"),
        (
            ["--from", "python", "old/books.py:mcp", "--include", "a"],
            "options that select operations require --from openapi",
        ),
        (["--yes"], "--yes requires --from python"),
    ],
)
def test_words_that_do_not_fit(words: list[str], said: str, folder: Path) -> None:
    (folder / "old" / "books.py").write_text("open('ran', 'w').close()\n")
    done = stubwright("new", "moved", *words, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert [path.name for path in folder.iterdir()] == ["old"], "nothing ran, and nothing was created"


def test_a_name_that_hides_the_old_file_is_refused(folder: Path) -> None:
    (folder / "old" / "books.py").rename(folder / "old" / "moved_server.py")
    done = move(folder, "old/moved_server.py:mcp")
    assert done.returncode == 1
    assert "`moved_server.py` imports or is `moved_server`, which is also a package of the new server" in done.stderr


@pytest.mark.long
def test_a_name_that_hides_what_the_old_file_imports_is_refused(folder: Path) -> None:
    (folder / "old" / "moved_mcp.py").touch()
    (folder / "old" / "books.py").write_text(
        f"import moved_mcp\n{BOOKS.replace('from __future__ import annotations', '')}"
    )
    done = move(folder)
    assert done.returncode == 1
    assert "`books.py` imports or is `moved_mcp`, which is also a package of the new server" in done.stderr


@pytest.mark.parametrize("is_shared", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_file_in_a_package_moves_with_its_relative_imports(folder: Path, is_shared: bool) -> None:
    package = folder / "old" / "library" / "desk"
    package.mkdir(parents=True)
    for each in (package, package.parent):
        (each / "__init__.py").touch()
    (package / "books.py").write_text(BOOKS.replace("from shelf import", "from ..shelf import").replace(TOP, NEAR))
    (package / "near.py").write_text("")
    (folder / "old" / "shelf.py").rename(package.parent / "shelf.py")
    python = None if is_shared else foreign_python(folder)
    done = move(folder, "old/library/desk/books.py", python=python)
    assert done.returncode == 0, done.stderr
    answers = compare(folder, "library.desk.books")
    assert answers["new"] == answers["old"]


@pytest.mark.parametrize(("typed", "is_made"), [("y", True), ("n", False)])
def test_a_person_is_asked_first(typed: str, is_made: bool, folder: Path) -> None:
    command = [*forked.interpreter(), "-m", "stubwright", "new", "moved", "--from", "python", "old/books.py:mcp"]
    python = forked.interpreter_in(folder)
    terminal = Terminal([*command, "--", str(python)], folder)
    terminal.until(f"This runs `{folder}/old/books.py` with `{python}`")
    terminal.until("Run it? [y/n]: ")
    terminal.type(f"{typed}\n")
    assert terminal.rest() == (0 if is_made else 1)
    assert (folder / "moved").exists() == is_made
    assert ("nothing was created" in terminal.text) == (not is_made)


def test_the_nearest_environment_has_the_interpreter(tmp_path: Path) -> None:
    def environment(name: str) -> str:
        python = tmp_path / name / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        python.parent.mkdir(parents=True)
        python.touch()
        return str(python)

    assert from_python.find_python(tmp_path / "a" / "b", {}) == sys.executable
    above = environment(".venv")
    assert from_python.find_python(tmp_path / "a" / "b", {}) == above
    nearest = environment("a/.venv")
    assert from_python.find_python(tmp_path / "a" / "b", {}) == nearest
    active = environment("active")
    assert from_python.find_python(tmp_path / "a" / "b", {"VIRTUAL_ENV": str(tmp_path / "active")}) == active
    assert from_python.find_python(tmp_path / "a" / "b", {"VIRTUAL_ENV": str(tmp_path / "gone")}) == nearest
