"""`stubwright call`, `list` and `inspect` at a terminal and in a pipe, with each kind of server."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

import amounts
import forked
from command_line import forking, stubwright
from processes import await_end, start_process
from stubwright import cli
from stubwright.calling import completion, listings, terminal
from stubwright.importers.server_listing import ServerListing
from stubwright_runtime.client.features.questions import Question
from stubwright_runtime.mcp.elicitation_answers import Cancelled
from terminals import Terminal

ROOT: Final = Path(__file__).parents[2]
SCRIPTED: Final = ROOT / "tests" / "support" / "scripted.py"
PAGE: Final = (ROOT / "docs" / "commands.md").read_text("utf-8")

MANIFEST: Final = """\
stubwright: 1
server: {name: desk, version: 2.0.0, capabilities: {logging: true}}
python: {handlers: "desk:Desk"}
tools:
  - name: add
    description: Adds numbers.
    inputSchema:
      type: object
      properties: {numbers: {type: array, items: {type: number}}, note: {type: string}}
      required: [numbers]
      additionalProperties: false
    outputSchema: {type: object, properties: {total: {type: number}}, required: [total]}
    annotations: {readOnlyHint: true}
    stubwright: {aliases: [{name: sum_up, removeAfter: 2.5.0, arguments: {values: numbers}}]}
  - name: work
    description: Works for a while, and asks.
    inputSchema: {type: object, properties: {steps: {type: integer}}}
    stubwright:
      ask:
        size:
          message: How large?
          schema:
            type: object
            properties:
              width: {type: integer, minimum: 1, title: Width, description: in metres}
              colour: {type: string, enum: [red, blue], default: blue}
              loud: {type: boolean}
            required: [width, loud]
  - name: picture
    description: Draws.
    inputSchema: {type: object}
  - name: fail
    description: Fails.
    inputSchema: {type: object}
prompts:
  - name: greet
    description: Greets.
    stubwright: {messages: [{role: user, text: Hello}]}
"""

HANDLERS: Final = """\
import asyncio
from desk_mcp import *
from desk_mcp import ToolError, image, text, AddOutput, DeskHandlers, Accepted


class Desk(DeskHandlers):
    async def add(self, args, ctx):
        return AddOutput(total=sum(args.numbers))

    async def work(self, args, ctx):
        for step in range(3):
            await ctx.progress(step + 1, 3, "step %d" % (step + 1))
            await asyncio.sleep(0.2)
        answer = await ctx.ask.size()
        return "%s: %r" % (type(answer).__name__, answer)

    async def picture(self, args, ctx):
        await ctx.log("debug", "which nobody asked for")
        await ctx.log("notice", {"pen": "réd\\x1b[2J"}, "easel")
        await ctx.log("error", "dry\\nnotice: made up")
        return [text("here it is"), image(b"\\x89PNG....", "image/png")]

    async def fail(self, args, ctx):
        raise ToolError("Out of paper; add some.")
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a server."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "desk.yaml").write_text(MANIFEST)
    (folder / "desk.py").write_text(HANDLERS)
    (folder / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["desk.yaml"]\n')
    done = stubwright("generate", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def command_in(folder: Path) -> list[str]:
    """How a command begins that starts servers with its own interpreter, a program in this folder."""
    return [str(forked.interpreter_in(folder)), "-m", "stubwright"]


@pytest.fixture(scope="module")
def url(desk: Path) -> Iterator[str]:
    """The same server over HTTP."""
    command = [*forked.interpreter(), "-m", "desk_mcp", "--handlers", "desk:Desk", "--http", "127.0.0.1:0"]
    env = {**os.environ, "PYTHONPATH": f"{desk}/generated:{desk}"}
    with start_process(command, env=env, stderr=subprocess.PIPE, cwd=desk) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if match := re.search(rb"http://\S+", line):
                yield match[0].decode().rstrip("/.,").removesuffix("/mcp") + "/mcp"
                return


def test_a_call_prints_what_was_answered(desk: Path) -> None:
    done = forking("call", "desk.yaml", "add", "numbers=1", "numbers=2.5", cwd=desk)
    assert (done.returncode, done.stdout) == (0, '{\n  "total": 3.5\n}\n')
    assert forking("call", "add", "numbers=[1, 2]", cwd=desk).stdout == '{\n  "total": 3\n}\n'  # the project's


def test_quiet_verbose_and_color_are_options_of_every_command(desk: Path) -> None:
    call = ["call", "desk.yaml", "add", "numbers=1"]
    assert forking(*call, "--color", "always", cwd=desk).stdout == '{\n  \x1b[36m"total"\x1b[0m: 1\n}\n'
    listed = forking("--color", "always", "list", "desk.yaml", cwd=desk).stdout
    assert "\x1b[1m4 tools, about " in listed
    assert "\n  \x1b[36madd\x1b[0m(numbers: " in listed
    assert "\x1b" not in forking("list", "desk.yaml", cwd=desk).stdout
    old = ["call", "desk.yaml", "sum_up", "values=1"]
    assert "note: `sum_up` is an old name" in forking(*old, cwd=desk).stderr
    assert "note: " not in forking(*old, "-q", cwd=desk).stderr
    assert forking("-q", "generate", cwd=desk).stdout == ""
    shop = ["call", "specs/shop.yaml", "restock"]
    assert [" INFO " in forking(*shop, *more, cwd=ROOT).stderr for more in ([], ["--verbose"])] == [False, True]


def test_json_is_short_for_a_format(desk: Path) -> None:
    for command in (["list", "desk.yaml"], ["check"], ["targets", "gemini"]):
        texts = [forking(*command, *form, cwd=desk).stdout for form in (["--json"], ["--format", "json"])]
        assert texts[0] == texts[1]
        assert json.loads(texts[0]) is not None


def test_json_is_the_whole_result(desk: Path) -> None:
    done = forking("call", "add", "numbers=1", "--json", cwd=desk)
    result = json.loads(done.stdout)
    assert (done.returncode, result["structuredContent"]) == (0, {"total": 1})
    assert json.loads(result["content"][0]["text"]) == {"total": 1}


def test_a_url_and_a_command_are_servers_too(desk: Path, url: str) -> None:
    done = stubwright("call", url, "add", "numbers=4", "--header", "X-Who: me", "note=x", cwd=desk)
    assert (done.returncode, done.stdout, done.stderr) == (0, '{\n  "total": 4\n}\n', "")
    command = [*forked.interpreter(), "-m", "desk_mcp", "--handlers", "desk:Desk"]
    path = f"PYTHONPATH={desk}/generated:{desk}"
    done = stubwright("call", "add", "numbers=5", "--env", path, "--", *command, cwd=desk)
    assert (done.returncode, done.stdout) == (0, '{\n  "total": 5\n}\n')


@pytest.mark.long
def test_an_old_name_of_a_tool_is_called_as_clients_do(desk: Path, url: str) -> None:
    note = "note: `sum_up` is an old name for `add`, to be removed after 2.5.0\n"
    for words in (["sum_up", "values=4"], [url, "sum_up", "values=[4]"]):
        done = forking("call", *words, cwd=desk)
        assert (done.returncode, done.stdout) == (0, '{\n  "total": 4\n}\n'), done.stderr
        assert done.stderr.endswith(note)


def test_a_command_that_lacks_a_variable_is_told_with_the_option_that_passes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_MODE", "hidden")
    program = "import os; os.environ['SHOP_MODE']"
    done = stubwright("call", "add", "--", sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-2:] == [
        f"stubwright: `{Path(sys.executable).name}` exited with status 1",
        "  help: the command did not inherit SHOP_MODE, which is set here; pass it with --env SHOP_MODE",
    ]
    assert "hidden" not in done.stderr


def test_arguments_come_from_standard_input(desk: Path) -> None:
    command = [*command_in(desk), "call", "add", "-"]
    done = subprocess.run(command, input='{"numbers": [7, 8]}', cwd=desk, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, '{\n  "total": 15\n}\n')


@pytest.mark.parametrize(
    ("given", "status", "told"),
    [
        (b'\xef\xbb\xbf{"numbers": [7, 8]}', 0, ""),
        (b'{"numbers": "\xff"}', 2, "stubwright: standard input is not valid UTF-8\n"),
    ],
)
def test_standard_input_is_in_utf_8(given: bytes, status: int, told: str, desk: Path) -> None:
    done = subprocess.run(
        [*command_in(desk), "call", "add", "-"], input=given, cwd=desk, capture_output=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert done.stderr.decode().endswith(told)
    assert b"Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("word", "status", "told"),
    amounts.sample([("numbers=7", 0, ""), ("-", 2, "stubwright: `-` reads standard input, which is closed\n")], 1),
)
def test_standard_input_may_be_closed(word: str, status: int, told: str, desk: Path) -> None:
    """As under some supervisors of services."""
    python = str(forked.interpreter_in(desk))
    command = [sys.executable, "-m", "stubwright", "call", "add", word, "--python", python]
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    done = subprocess.run(shell, cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert done.stderr.endswith(told)


def test_pictures_become_files(desk: Path, tmp_path: Path) -> None:
    done = forking("call", "picture", "--save", str(tmp_path / "out"), cwd=desk)
    assert (done.returncode, done.stdout) == (0, "here it is\n[image: image/png, 8 bytes]\n")
    assert (tmp_path / "out" / "picture-2.png").read_bytes() == b"\x89PNG...."
    assert done.stderr.endswith(f"wrote {tmp_path}/out/picture-2.png\n")
    again = forking("call", "picture", "--save", str(tmp_path / "out"), cwd=desk)
    assert again.returncode == 1
    assert "cannot write the result's files: File exists" in again.stderr


@pytest.mark.parametrize(
    ("words", "status", "told"),
    amounts.sample(
        [
            (["fail"], 1, "Out of paper; add some.\n"),
            (["add"], 1, "Invalid arguments for add:\n- numbers: required, but missing\n"),
            (["ad", "numbers=1"], 2, "stubwright: there is no tool `ad`; did you mean `add`?\n"),
            (["add", "numbers=x"], 2, "stubwright: `numbers` must be a number, not `x`\n"),
            (["add", "number=1"], 2, "stubwright: there is no argument `number`; did you mean `numbers`?\n"),
            (
                ["add", "numbers=@none"],
                2,
                "stubwright: `numbers` cannot be read from `none`: No such file or directory\n",
            ),
            (
                [],
                2,
                "stubwright: specify a tool, as in: stubwright call specs/weather.yaml get_weather location=Paris\n",
            ),
            (["none.yaml", "add"], 1, "error[SW001]: `none.yaml` does not exist"),
            (
                ["add", "n=1", "http://h/mcp"],
                2,
                "stubwright: the server comes first: put `http://h/mcp` before `add`\n",
            ),
            (["add", "--header", "A: b"], 2, "stubwright: --header is for a URL\n"),
            (["http://127.0.0.1:9/mcp", "add", "--mock"], 2, "stubwright: --mock is for a manifest's server\n"),
            (
                ["HTTP://127.0.0.1:9/mcp", "add"],
                3,
                "stubwright: `http://127.0.0.1:9/mcp` cannot be reached: connection refused\n",
            ),
            (
                ["add", "--", sys.executable, "-c", "import sys; sys.exit('no key is set')"],
                3,
                f"no key is set\nstubwright: `{Path(sys.executable).name}` exited with status 1\n",
            ),
            (
                ["add", "--", "/nowhere/at-all"],
                3,
                "stubwright: `at-all` cannot be started: program not found; is it installed?\n",
            ),
        ],
        4,
    ),
)
@pytest.mark.usefixtures("nothing_to_pass")
def test_the_exit_status_says_what_came_of_it(words: list[str], status: int, told: str, desk: Path) -> None:
    done = forking("call", *words, cwd=desk)
    assert done.returncode == status, done.stderr
    log = re.compile(r"^\d{4}-\d\d-\d\d .*\n", re.MULTILINE)
    assert log.sub("", done.stderr).startswith(told)


def test_a_result_that_breaks_its_schema_is_shown_and_told(desk: Path, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    results = {\n"
        "        'initialize': {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}},\n"
        "                       'serverInfo': {'name': 'a', 'version': '1'}},\n"
        "        'tools/list': {'tools': [{'name': 't', 'inputSchema': {'type': 'object'}, 'outputSchema':\n"
        "                       {'type': 'object', 'properties': {'n': {'type': 'integer'}}}}]},\n"
        "        'tools/call': {'content': [], 'structuredContent': {'n': 'five'}},\n"
        "    }\n"
        "    if 'id' in message:\n"
        "        answer = ({'result': results[message['method']]} if message['method'] in results\n"
        "                  else {'error': {'code': -32601, 'message': 'no'}})\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **answer}), flush=True)\n"
    )
    done = stubwright("call", "t", "--", sys.executable, str(server), cwd=desk)
    assert (done.returncode, done.stdout) == (1, '{\n  "n": "five"\n}\n')
    assert done.stderr.startswith("stubwright: the result of 't' violates its outputSchema:\n  ")


def test_odd_results_are_described(desk: Path, tmp_path: Path) -> None:
    results = {
        "infinite": {"content": [], "structuredContent": {"n": math.nan}},
        "odd": {"content": [{"type": "hologram"}]},
        "half": {"content": [{"type": "text", "text": 5}]},
        "unlisted": {"content": [{"type": "text", "text": "the disk is full"}], "isError": True},
    }
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("infinite", "odd", "half")]
    info = {"name": "a", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    (tmp_path / "answers.json").write_text(json.dumps([{"initialize": hello, "tools/list": {"tools": tools}}, results]))
    (tmp_path / "server.py").write_text(
        "import json, sys\n"
        f"answers, results = json.load(open({str(tmp_path / 'answers.json')!r}))\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    answer = answers.get(message['method']) or results.get(message.get('params', {}).get('name'))\n"
        "    whole = {'result': answer} if answer else {'error': {'code': -32601, 'message': 'no'}}\n"
        "    if 'id' in message:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **whole}), flush=True)\n"
    )
    server = ("--", sys.executable, str(tmp_path / "server.py"))
    broken = "stubwright: the server's response is not valid MCP: content.0"
    for name, status, told in (
        ("infinite", 1, "stubwright: structuredContent in the result is NaN or infinite, which JSON does not support;"),
        ("odd", 3, f"{broken}.type: 'hologram' is not known (MCP error -32700)\n"),
        ("half", 3, f"{broken}.TextContent.text: Input should be a valid string (MCP error -32700)\n"),
        ("unlisted", 1, "the disk is full\nnote: `unlisted` is not listed; the tools are `infinite`, `odd`, `half`\n"),
    ):
        done = forking("call", name, *server, cwd=desk)
        assert (done.returncode, done.stderr[: len(told)]) == (status, told)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"status": "cancelled", "statusMessage": "no paper"}, "the task of 'print' was cancelled: no paper\n"),
        (
            {"code": -32602, "message": "unknown"},
            "the task of 'print' is unknown to the server, or has expired: unknown\n",
        ),
    ],
)
def test_a_task_without_a_result_has_a_reason(state: dict[str, Any], told: str, tmp_path: Path) -> None:
    task = {"taskId": "1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "ttl": None, "pollInterval": 1}
    task["lastUpdatedAt"] = task["createdAt"]
    offers: dict[str, Any] = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    info = {"name": "a", "version": "1"}
    tool = {"name": "print", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            {
                "initialize": {"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": info},
                "tools/list": {"tools": [tool]},
                "tools/call": {"task": task},
                "tasks/get": state if "code" in state else {**task, **state},
            }
        )
    )
    done = forking("call", "print", "--", *forked.interpreter(), str(SCRIPTED), str(script), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"stubwright: {told}")


def test_an_old_package_is_told(desk: Path, tmp_path: Path) -> None:
    for name in ("desk.py", "pyproject.toml"):
        (tmp_path / name).write_text((desk / name).read_text())
    (tmp_path / "desk.yaml").write_text(MANIFEST)
    assert stubwright("generate", cwd=tmp_path).returncode == 0
    (tmp_path / "desk.yaml").write_text(MANIFEST.replace("note: {type: string}", "note: {type: integer}"))
    done = forking("call", "add", "numbers=1", cwd=tmp_path)
    assert done.returncode == 0
    assert "note: `add` was generated from an older manifest; run `stubwright generate`\n" in done.stderr
    (tmp_path / "generated").rename(tmp_path / "elsewhere")
    done = forking("call", "add", "numbers=1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, '{\n  "total": 1\n}\n')
    assert done.stderr == "note: `generated/desk_mcp` was generated\n"
    done = forking("call", "add", "numbers=1", "--mock", cwd=tmp_path)
    assert (done.returncode, list(json.loads(done.stdout))) == (0, ["total"])


# --- At a terminal ----------------------------------------------------------------------------------------------


def test_the_log_of_a_server_is_shown_beside_its_answer(desk: Path, url: str) -> None:
    lines = 'notice easel: {"pen": "réd\\u001b[2J"}\nerror: dry notice: made up\n'
    for server in (["desk.yaml"], [url]):
        done = forking("call", *server, "picture", cwd=desk)
        assert (done.returncode, done.stderr) == (0, lines)
        assert done.stdout.startswith("here it is\n")


def test_at_a_terminal_progress_is_shown_and_questions_are_asked(desk: Path) -> None:
    terminal = Terminal([*command_in(desk), "call", "desk.yaml", "work", "steps=3"], desk)
    terminal.until("[########................]  33% step 1")
    terminal.until("the server asks: How large?")
    terminal.until("Width (in metres): ")
    terminal.type("wide\n")
    terminal.until("`width` must be a whole number, not `wide`")
    terminal.type("3\n")
    terminal.until('colour [red, blue] (Enter: "blue"): ')
    terminal.type("\n")
    terminal.until("loud [y/n]: ")
    terminal.type("y\n")
    status = terminal.rest()
    assert status == 0, terminal.text
    last = terminal.text.rpartition("\r\n")[0].rpartition("\x1b[K")[2]
    assert last.startswith("WorkSizeAnswer: ")
    assert "width=3" in last
    assert "loud=True" in last
    assert "\r\x1b[K" in terminal.text.partition("the server asks")[0][-60:]  # the line of progress made way


BAKERY: Final = """\
stubwright: 1
server: {name: bakery, version: 1.0.0}
python: {handlers: "bakery:Bakery"}
tools:
  - name: bake_cake
    description: Bakes a cake.
    inputSchema: {type: object, properties: {kind: {type: string}}, required: [kind]}
    stubwright:
      ask:
        glaze:
          message: Which glaze?
          schema:
            type: object
            properties:
              glaze: {type: string, title: Glaze, enum: [chocolate, sugar], default: sugar}
              people: {type: integer, title: For how many, minimum: 1}
              gift: {type: boolean, title: Is it a gift?}
            required: [glaze, people, gift]
"""
BAKER: Final = """\
import asyncio

from bakery_mcp import BakeCakeGlazeAnswer, BakeCakeInput, BakeCakeContext, BakeryHandlers


class Bakery(BakeryHandlers):
    async def bake_cake(self, args: BakeCakeInput, ctx: BakeCakeContext) -> str:
        await ctx.progress(1, 3, "mixing")
        await asyncio.sleep(0.2)
        await ctx.progress(2, 3, "baking")
        await asyncio.sleep(0.2)
        answer = await ctx.ask.glaze()
        assert isinstance(answer, BakeCakeGlazeAnswer)
        await ctx.progress(3, 3, "glazing")
        await asyncio.sleep(0.2)
        return f"A {args.kind} cake with {answer.glaze} glaze for {answer.people}{', wrapped' * answer.gift}."
"""


@pytest.mark.long
def test_the_page_shows_what_a_person_sees_and_types(tmp_path: Path) -> None:
    [shown] = re.findall(r"^```console\n\$ (stubwright call bakery.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    command, _, transcript = shown.partition("\n")
    (tmp_path / "bakery.yaml").write_text(BAKERY)
    (tmp_path / "bakery.py").write_text(BAKER)
    generated = stubwright("generate", "bakery.yaml", cwd=tmp_path)
    assert (generated.returncode, generated.stderr) == (0, "")
    terminal = Terminal([*command_in(tmp_path), *command.split()[1:]], tmp_path)
    for prompt, typed in (
        ('Glaze [chocolate, sugar] (Enter: "sugar"): ', "dark"),
        ('not `dark`\r\nGlaze [chocolate, sugar] (Enter: "sugar"): ', "chocolate"),
        ("For how many: ", "8"),
        ("Is it a gift? [y/n]: ", "y"),
    ):
        terminal.until(prompt)
        terminal.type(f"{typed}\n")
    assert terminal.rest() == 0, terminal.text
    lines = re.split(r"\r\n|\r\x1b\[K", terminal.text)  # a line of progress is overwritten by the next one
    assert [line for line in lines if line] == [line for line in transcript.splitlines() if line]


@pytest.mark.long
def test_ctrl_d_answers_nothing_and_ctrl_c_ends_the_call(desk: Path) -> None:
    terminal = Terminal([*command_in(desk), "call", "work"], desk)
    terminal.until("Width (in metres): ")
    terminal.type("\x04")
    assert terminal.rest() == 0
    assert "Cancelled" in terminal.text
    terminal = Terminal([*command_in(desk), "call", "work"], desk)
    terminal.until("step 1")
    terminal.type("\x03")
    assert terminal.rest() == 130
    assert "Traceback" not in terminal.text


def test_without_a_terminal_nobody_is_asked(desk: Path) -> None:
    done = forking("call", "work", cwd=desk)
    assert done.returncode == 3
    assert "elicitation" in done.stderr.lower()
    assert done.stderr.endswith("; answer questions at a terminal, or with --answer\n")
    assert "elicitation" in done.stderr.lower()
    assert done.stderr.endswith("; answer questions at a terminal, or with --answer\n")
    assert "\x1b" not in done.stderr


def test_answers_of_the_command_line_need_no_terminal(desk: Path) -> None:
    answers = ["--answer", "width=3", "--answer", "loud=yes", "--answer", "depth=1"]
    done = forking("call", "work", *answers, cwd=desk)
    assert (done.returncode, done.stdout) == (0, "WorkSizeAnswer: WorkSizeAnswer(width=3, colour='blue', loud=True)\n")
    assert done.stderr.splitlines()[-1] == "note: no question matched --answer depth"


@pytest.mark.parametrize(
    ("answers", "told"),
    amounts.sample(
        [
            (["width=3"], "answer it with --answer loud=VALUE"),
            (["width=wide", "loud=no"], "`width` must be a whole number, not `wide`"),
            (["width=0", "loud=no"], "width: expected at least 1, got 0"),
        ],
        1,
    ),
)
def test_an_answer_that_is_missing_or_does_not_fit_is_told(answers: list[str], told: str, desk: Path) -> None:
    done = forking("call", "work", *(part for each in answers for part in ("--answer", each)), cwd=desk)
    assert "the server asks: How large?" in done.stderr
    assert told in done.stderr
    assert done.stdout == "Cancelled: Cancelled()\n"


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("no", False)])
def test_a_word_answers_a_form_with_one_boolean(word: str, value: bool) -> None:
    answers = terminal.Answers([word], io.StringIO(), None)
    assert answers(Question("Sure?", {"type": "object", "properties": {"agreed": {"type": "boolean"}}})) == {
        "agreed": value
    }
    assert not answers.unused


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"enum": [1, 2], "enumNames": ["one", "two"]}, "two", 2),
        ({"$ref": "#/$defs/Size"}, "3", 3),
        ({"type": "array", "items": {"anyOf": [{"title": "Red"}, {"const": "b", "title": "Blue"}]}}, "Blue", ["b"]),
        ({"type": "string"}, "@home", "@home"),
    ],
)
@pytest.mark.parametrize("name", ["size", "shirt.size", "size:", "{", "-", ""])
def test_a_field_may_have_any_name(name: str, field: Any, text: str, value: Any) -> None:
    form = {"type": "object", "properties": {name: field}, "$defs": {"Size": {"type": "integer"}}}
    assert terminal.Answers([f"{name}={text}"], io.StringIO(), None)(Question("?", form)) == {name: value}
    typed = terminal.TerminalPrompter(io.StringIO(), terminal.Progress(io.StringIO()), io.StringIO(text).readline)
    assert typed(Question("?", form)) == {name: value}


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"properties": {"size": {}}, "minProperties": 2}, "the answer violates the question's schema"),
        ({"properties": {"size": {}, "n": {"type": "integer", "default": "x"}}}, "n: expected an integer"),
        ({"properties": {"size": {"$ref": "#/properties/n"}, "n": {}}}, "Pointer '/properties/n' does not exist"),
    ],
)
def test_a_question_that_no_answer_fits_is_cancelled(form: Any, why: str) -> None:
    err = io.StringIO()
    answer = terminal.check_answers(terminal.Answers(["size=3"], err, None), err)
    assert answer(Question("?", {"type": "object", **form})) == Cancelled()
    assert why in err.getvalue()


def test_an_answer_has_a_name(desk: Path) -> None:
    done = forking("call", "work", "--answer", "perhaps", cwd=desk)
    assert done.returncode == 2
    assert "--answer requires NAME=VALUE, or yes or no for a question without fields" in done.stderr


def test_a_token_goes_to_a_url_and_to_no_command(tmp_path: Path) -> None:
    heard: list[str | None] = []

    class Guarded(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.headers["Authorization"])
            self.send_error(401)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Guarded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = stubwright("call", f"http://127.0.0.1:{server.server_port}/mcp", "add", "--token", "t0ken", cwd=tmp_path)
        server.shutdown()
    assert set(heard) == {"Bearer t0ken"}
    assert done.returncode == 3
    assert "--token" in done.stderr
    assert "t0ken" not in done.stderr
    done = stubwright("call", "add", "--token", "t0ken", "--", "server", cwd=tmp_path)
    assert done.returncode == 2
    assert "--header and --token are for a URL; a command has no headers" in done.stderr
    done = stubwright("call", "http://127.0.0.1:9/mcp", "add", "--token", "", cwd=tmp_path)
    assert (done.returncode, done.stderr.partition(";")[0]) == (
        2,
        "stubwright call: argument --token: the token is empty",
    )


def test_a_signal_leaves_no_server_behind(desk: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"import os, sys, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with start_process([*command_in(desk), "call", "add", "--", sys.executable, "-c", code], cwd=desk) as process:
        end = time.monotonic() + 30
        while not (note.exists() and note.read_text()):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    await_end(int(note.read_text()))


# --- Lists ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reads", "words"), [(True, "read-only"), (False, "destructive, idempotent")])
def test_a_list_shows_no_hint_that_means_nothing(reads: bool, words: str) -> None:
    hints = {"readOnlyHint": reads, "destructiveHint": not reads, "idempotentHint": True}
    tool = {"name": "t", "description": "Does it.", "inputSchema": {"type": "object"}, "annotations": hints}
    listing = ServerListing("2025-11-25", {"name": "s", "version": "1"}, {}, {"tools": [tool]})
    assert re.search(rf"Does it\. \({words}, [0-9]+ tokens\)", listings.show(listing))


def test_a_list_shows_what_there_is_and_what_it_costs(desk: Path, url: str) -> None:
    done = forking("list", cwd=desk)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:6] == [
        "desk 2.0.0 (MCP 2026-07-28)",
        "",
        "4 tools, about 144 tokens",
        "  add(numbers: number[], note?: string) -> {total}",
        "      Adds numbers. (read-only, 80 tokens)",
        "  work(steps?: integer)",
    ]
    listed = json.loads(stubwright("list", url, "--json", cwd=desk).stdout)
    own = json.loads(forking("list", "desk.yaml", "--json", cwd=desk).stdout)
    assert [tool["name"] for tool in listed["tools"]] == ["add", "work", "picture", "fail"]
    assert listed["tools"] == own["tools"]
    assert listed["prompts"] == own["prompts"]
    assert own["cost"]["total"] == sum(own["cost"]["tools"].values()) + sum(own["cost"]["prompts"].values())


def test_what_is_hidden_from_a_caller_is_told() -> None:
    shop = "specs/shop.yaml"
    assert "(needs `shop:staff`" in forking("list", shop, cwd=ROOT).stdout
    done = forking("list", shop, "--scope", "other", cwd=ROOT)
    assert "restock(" not in done.stdout
    assert "note: `restock`: hidden from callers without scopes; add --scope shop:staff\n" in done.stderr
    done = forking("list", shop, "--scope", "shop:staff", cwd=ROOT)
    assert "restock(" in done.stdout
    assert "hidden" not in done.stderr
    done = forking("call", shop, "restock", cwd=ROOT)
    assert done.returncode == 2
    hidden = "`restock`: hidden from callers without scopes; add --scope shop:staff\n"
    assert done.stderr == f"stubwright: {hidden}"
    done = forking("call", shop, "restok", cwd=ROOT)
    assert done.stderr == f"stubwright: there is no tool `restok`; did you mean {hidden}"


def test_a_list_of_nothing_says_why(desk: Path) -> None:
    done = stubwright("list", "--json", "http://127.0.0.1:9/mcp", cwd=desk)
    assert (done.returncode, done.stdout) == (3, "")
    inspected = forking("inspect", "--json", "http://127.0.0.1:9/mcp", cwd=desk)
    assert (inspected.returncode, inspected.stdout) == (3, "")
    assert done.stderr == (
        "stubwright: `http://127.0.0.1:9/mcp` cannot be reached: connection refused; "
        "check the URL, and that the server runs\n"
    )


SHAPES: Final = """\
stubwright: 1
server: {name: shapes, version: 1.0.0, title: Shapes}
tools:
  - name: names
    title: All names
    description: Lists names.
    inputSchema: {type: object}
    outputSchema: {type: array, items: {type: string}}
"""


def test_inspect_shows_what_each_revision_sees(tmp_path: Path) -> None:
    (tmp_path / "shapes.yaml").write_text(SHAPES)
    done = forking("inspect", "shapes.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    newest, *older = re.split(r"^(?=\d{4}-\d\d-\d\d: )", done.stdout, flags=re.MULTILINE)[1:]
    assert "names() -> string[]" in newest
    assert older == [
        "2025-11-25: as 2026-07-28, but\n  capabilities: with `logging`\n  tool `names`: without `outputSchema`\n",
        "2025-06-18: as 2026-07-28, but\n  capabilities: with `logging`\n  tool `names`: without `outputSchema`\n",
        (
            "2025-03-26: as 2026-07-28, but\n  capabilities: with `logging`\n  tool `names`: without `outputSchema`\n"
            "  its clients do not support `title` of tools\n"
        ),
        (
            "2024-11-05: as 2026-07-28, but\n  capabilities: with `logging`\n  tool `names`: without `outputSchema`\n"
            "  its clients do not support `title` of tools\n"
        ),
    ]
    one = forking("inspect", "shapes.yaml", "names", "--revision", "2025-03-26", "--json", cwd=tmp_path)
    assert json.loads(one.stdout)["2025-03-26"]["name"] == "names"
    wrong = forking("inspect", "shapes.yaml", "name", "--revision", "2025-03-26", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (2, "stubwright: there is no `name`; did you mean `names`?\n")


def test_inspect_asks_a_server_in_each_revision(url: str, tmp_path: Path) -> None:
    done = stubwright("inspect", url, "add", cwd=tmp_path)
    definition, _, rest = done.stdout.partition("\n\n")
    assert json.loads(definition)["name"] == "add"
    assert [line.partition(":")[0] for line in rest.splitlines() if line[:2] == "20"] == [
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
    ]


# --- Completion --------------------------------------------------------------------------------------------------

BASH: Final = r"""
source <(stubwright completion bash)
COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDBREAKS=$' \t\n"\047><=;|&(:'
shift
COMP_WORDS=("$@") COMP_CWORD=$(( $# - 1 )) COMPREPLY=()
_stubwright_complete 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"""


COMPLETED: Final = [
    ("stubwright call desk.yaml w", ["call", "desk.yaml", "w"], ["work"]),
    ("stubwright call desk.yaml --json w", ["call", "desk.yaml", "--json", "w"], ["work"]),
    ("stubwright call w", ["call", "w"], ["work"]),
    ("stubwright call add n", ["call", "add", "n"], ["numbers=", "note="]),
    ("stubwright inspect desk.yaml g", ["inspect", "desk.yaml", "g"], ["greet"]),
    ("stubwright call desk.y", ["call", "desk.y"], ["desk.yaml"]),
    ("stubwright call --js", ["call", "--js"], ["--json"]),
    ("stubwright li", ["li"], ["list"]),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the PATH with `stubwright`, which is forked."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "stubwright").write_text(f'#!/bin/sh\nexec {forked.interpreter_in(folder)} -m stubwright "$@"\n')
    (folder / "stubwright").chmod(0o755)
    return folder


@pytest.mark.parametrize(("line", "words", "found"), amounts.sample(COMPLETED, 1))
def test_a_shell_completes_tools_and_arguments(
    line: str, words: list[str], found: list[str], desk: Path, program: Path
) -> None:
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", line, "stubwright", *words],
        cwd=desk,
        env={**os.environ, "PATH": f"{program}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == found, done.stderr


@pytest.mark.parametrize(
    ("shell", "words", "status", "told"),
    [
        ("/usr/bin/fish", [], 0, "complete -c stubwright"),
        ("/bin/zsh", ["fish"], 0, "stubwright complete-words (commandline -cp) 2>/dev/null |"),
        ("/bin/zsh", [], 0, "#compdef stubwright"),
        ("", [], 2, "stubwright: $SHELL is empty or not set; the shells are `bash`, `zsh`, `fish`, `tcsh`\n"),
        (
            "/bin/zsh",
            ["fsh"],
            2,
            "stubwright completion: `fsh` is not a valid value for `SHELL`; did you mean `fish`?\n",
        ),
    ],
)
def test_completion_is_for_the_shell_of_the_user(
    shell: str, words: list[str], status: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", shell)
    done = forking("completion", *words, cwd=ROOT)
    assert done.returncode == status
    assert told in (done.stderr if status else done.stdout)


def test_completion_knows_each_option_that_has_a_value() -> None:
    """Otherwise the shell treats the value as the tool."""
    parsers = cli._parser(completion._VERBS)._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    options = {
        word
        for parser in parsers.values()  # type: ignore[union-attr]
        for action in parser._actions
        if action.nargs is None
        for word in action.option_strings
    }
    assert options == completion._WITH_VALUE


TOOLSETS: Final = """\
stubwright: 1
server: {name: desk, version: 1.0.0}
toolsets:
  reading: {tools: ["*"], readOnly: true}
  some: {tools: [find]}
tools:
- {name: find, description: Finds., inputSchema: {type: object}, annotations: {readOnlyHint: true}}
- {name: count, description: Counts., inputSchema: {type: object}, annotations: {readOnlyHint: true}}
- {name: write, description: Writes., inputSchema: {type: object}}
"""


@pytest.mark.parametrize("how", amounts.sample(["URL", "manifest", "command"], 1))
def test_a_server_is_asked_as_callers_of_a_toolset_do(how: str, tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text(TOOLSETS)
    mock = [*forked.interpreter(), "-m", "stubwright", "mock", "desk.yaml"]

    def names(verb: str, *toolsets: str) -> list[str]:
        options = [word for name in toolsets for word in ("--toolset", name)]
        done = forking(verb, *named, *options, "--json", *behind, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        shown = json.loads(done.stdout)
        return [tool["name"] for tool in (shown if verb == "list" else shown["2026-07-28"])["tools"]]

    with ExitStack() as stack:
        named, behind = ["desk.yaml", "--mock"], []
        if how == "command":
            named, behind = [], ["--", *mock]
        elif how == "URL":
            pipes: Any = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}  # ends both
            server = stack.enter_context(start_process([*mock, "--http", "127.0.0.1:0"], cwd=tmp_path, **pipes))
            assert server.stderr is not None
            named = [next(found[0] for line in server.stderr if (found := re.search(r"http://\S+/mcp", line)))]
        assert names("list", "reading") == names("inspect", "reading") == ["find", "count"]
        assert names("list", "reading", "some") == ["find"]
        done = forking("call", *named, "--toolset", "some", "count", *behind, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, "stubwright: there is no tool `count`; the tools are `find`\n")
        done = forking("list", *named, "--toolset", "rading", *behind, cwd=tmp_path)
        assert done.returncode == (2 if how == "manifest" else 3)
        assert re.search(r"o toolset ('rading'; the toolsets are|`rading`; did you mean) `?reading", done.stderr)


@pytest.mark.long
def test_only_what_is_in_the_toolset_is_hidden_for_want_of_a_scope(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text(
        TOOLSETS.replace("{name: count,", "{name: count, stubwright: {policy: {scopes: [desk:read]}},").replace(
            "{name: write,", "{name: write, stubwright: {policy: {scopes: [desk:write]}},"
        )
    )
    methods = "".join(f"    async def {name}(self, args, ctx): ...\n" for name in ("find", "count", "write"))
    (tmp_path / "desk.py").write_text(f"class Desk:\n{methods}")
    assert forking("generate", "desk.yaml", cwd=tmp_path).returncode == 0

    def tell(verb: str, *words: str) -> str:
        done = forking(verb, "desk.yaml", "--handlers", "desk:Desk", "--toolset", "reading", *words, cwd=tmp_path)
        return "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith(("note", "stubw")))

    assert tell("list") == "note: `count`: hidden from callers without scopes; add --scope desk:read\n"
    assert tell("call", "count") == ("stubwright: `count`: hidden from callers without scopes; add --scope desk:read\n")
    for words in (["list", "--toolset", "some"], ["list", "--scope", "desk:read"]):
        assert tell(*words) == ""
    assert tell("call", "write") == "stubwright: there is no tool `write`; the tools are `find`\n"


@pytest.mark.parametrize("option", ["--scope", "--handlers", "--python"])
def test_a_mock_has_no_callers_handlers_or_interpreter_of_its_own(option: str, desk: Path) -> None:
    done = forking("list", "desk.yaml", "--mock", option, "other", cwd=desk)
    assert done.returncode == 2
    assert f"stubwright: {option} has no effect on a mock, which serves all tools\n" in done.stderr


def test_completion_gives_values_from_where_the_shell_begins_its_word(tmp_path: Path) -> None:
    from stubwright.calling.completion import complete

    manifest = tmp_path / "m.yaml"
    manifest.write_text(
        "stubwright: 1\nserver: {name: a, version: 1.0.0}\ntools:\n- name: t\n  description: d.\n"
        "  inputSchema: {type: object, properties: {units: {enum: [metric, imperial]}, on: {type: boolean}}}\n"
    )
    start = f"stubwright call {manifest} t "
    assert complete(start + "units=m", "=:") == ["metric"]
    assert complete(start + "units=") == ["units=metric", "units=imperial"]
    assert complete(start + "--timeout 5 on=", "=") == ["true", "false"]
    assert complete(start + "'units=i", "=") == ["imperial"]
    assert complete("stubwright check ") == []
    assert complete(f"stubwright call {tmp_path}/none.yaml ") == []


def test_what_a_server_says_moves_no_terminal(desk: Path, tmp_path: Path) -> None:
    evil = base64.b64encode(b"\x1b[2Jgone").decode()
    server = tmp_path / "server.py"
    server.write_text(
        "import base64, json, sys\n"
        f"evil = base64.b64decode('{evil}').decode()\n"
        "for line in sys.stdin:\n"
        "    message: dict = json.loads(line)\n"
        "    tool = {'name': 't', 'description': evil, 'inputSchema': {'type': 'object', 'properties': {evil: {}}}}\n"
        "    results = {\n"
        "        'initialize': {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}},\n"
        "                       'serverInfo': {'name': evil, 'version': evil}},\n"
        "        'tools/list': {'tools': [tool]},\n"
        "        'tools/call': {'content': [{'type': 'text', 'text': evil}], 'isError': True},\n"
        "    }\n"
        "    if 'id' in message:\n"
        "        answer = ({'result': results[message['method']]} if message['method'] in results\n"
        "                  else {'error': {'code': -32601, 'message': evil}})\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **answer}), flush=True)\n"
    )
    shown: dict[str, Any] = {}
    command = command_in(tmp_path)
    for words in (["call", "t"], ["list"], ["inspect"]):
        terminal = Terminal([*command, *words, "--", sys.executable, str(server)], desk)
        terminal.rest()
        shown[words[0]] = terminal.text
    assert all("gone" in text for text in shown.values()), shown
    assert all("\x1b[2J" not in text for text in shown.values())
