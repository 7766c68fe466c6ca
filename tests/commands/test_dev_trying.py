"""`stubwright dev` with a debugger at the terminal and with temporary tokens."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Final

import jwt
import pytest

import amounts
import forked
from command_line import stubwright
from editors import write
from processes import start_process
from stubwright.serving.issuer import Issuer, list_scopes
from stubwright_runtime import Forbidden, Unauthorized
from stubwright_runtime.client.transports.connect import Connection, create_client
from terminals import Terminal

MANIFEST: Final = """\
stubwright: 1
server: {name: diary, version: 1.0.0}
python: {handlers: "diary:Diary"}
tools:
  - {name: say, description: Says., inputSchema: {type: object, properties: {word: {type: string}}}}
"""
AUTH: Final = """\
auth: {issuer: "https://auth.example.com", audience: "https://diary.example.com/mcp", requiredScopes: [diary:read]}
"""
WRITE: Final = """\
  - name: note
    description: Notes.
    inputSchema: {type: object}
    stubwright: {policy: {scopes: [diary:write]}}
"""
HANDLERS: Final = """\
from diary_mcp import DiaryHandlers

class Diary(DiaryHandlers):
    async def say(self, args, ctx):
        word = args.word
        breakpoint()
        return f"{word} {ctx.principal.subject}"

    def note(self, args, ctx):
        return "noted"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "pyproject.toml", '[tool.stubwright]\nmanifests = ["diary.yaml"]\n')
    write(tmp_path / "diary.yaml", MANIFEST)
    write(tmp_path / "diary.py", HANDLERS)
    return tmp_path


@pytest.fixture
def guarded(project: Path) -> Path:
    write(project / "diary.yaml", MANIFEST + WRITE + AUTH)
    write(project / "diary.py", HANDLERS.replace("        breakpoint()\n", ""))
    return project


def call(url: str, tool: str, arguments: dict[str, Any], token: str | None = None) -> str:
    async def go() -> str:
        headers = None if token is None else {"Authorization": f"Bearer {token}"}
        client = create_client(url, headers=headers)
        async with Connection(client, client, "diary_mcp") as it:
            (block,) = (await it.call_tool(tool, arguments)).content
            return str(getattr(block, "text", None))

    return asyncio.run(go())


def command(project: Path, *options: str) -> list[str]:
    """Return the command of `stubwright dev` and its servers with the forking interpreter."""
    python = str(forked.interpreter_in(project.parent))
    return [python, "-m", "stubwright", "dev", "--http", "127.0.0.1:0", *options]


def served(text: str) -> str:
    found = re.search(r"serving (http://[^\s]+)", text)
    assert found is not None, text
    return found[1]


def test_a_breakpoint_asks_at_the_terminal(project: Path) -> None:
    terminal = Terminal(command(project), project)
    try:
        terminal.until("interrupt to stop")
        answers: list[str] = []
        url = served(terminal.text)
        caller = threading.Thread(target=lambda: answers.append(call(url, "say", {"word": "hello"})))
        caller.start()
        terminal.until("(Pdb)")
        terminal.type("p word.upper()\n")
        terminal.until("'HELLO'")
        terminal.type("word = 'changed'\n")
        terminal.type("c\n")
        caller.join(60)
        assert answers == ["changed anonymous"]
    finally:
        os.kill(terminal.pid, signal.SIGINT)
        assert terminal.rest() == 0


@pytest.mark.long
def test_on_standard_input_a_breakpoint_is_passed_over(project: Path) -> None:
    assert stubwright("generate", cwd=project).returncode == 0
    done = stubwright("call", "say", "word=hello", cwd=project)
    assert (done.stdout, done.returncode) == ("hello local\n", 0)
    assert "diary.py:6: breakpoint() was ignored" in done.stderr
    assert "stubwright dev" in done.stderr
    assert "start the server with --debug-port 5678" in done.stderr


def test_a_run_takes_its_own_token_alone(guarded: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    given = command(guarded, "--scope", "diary:read", "--scope", "diary:write", "--as", "ann")
    with log.open("wb") as out, start_process(given, cwd=guarded, stdout=out, stderr=out) as process:
        text = until(log, process, "$TOKEN")
        url, token = served(text), token_of(text)
        assert "for `ann` with diary:read diary:write" in text
        assert call(url, "say", {"word": "hello"}, token) == "hello ann"
        assert call(url, "note", {}, token) == "noted"
        with pytest.raises(Unauthorized):
            call(url, "say", {"word": "hello"})
        auth = {"issuer": "https://auth.example.com", "audience": "https://diary.example.com/mcp"}
        with pytest.raises(Unauthorized):
            call(url, "say", {"word": "hello"}, Issuer().make_token(auth, "ann", ["diary:read"]))
        write(guarded / "diary.py", HANDLERS.replace("        breakpoint()\n", "").replace("noted", "noted again"))
        until(log, process, "\ndiary_mcp: serving", 2)
        end = time.monotonic() + 30
        while call(url, "note", {}, token) != "noted again":  # a save takes no token away
            assert time.monotonic() < end
        process.send_signal(signal.SIGINT)
        process.wait(20)


@pytest.mark.long
def test_a_token_has_no_more_than_it_was_given(guarded: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    given = command(guarded, "--scope", "diary:write")
    with log.open("wb") as out, start_process(given, cwd=guarded, stdout=out, stderr=out) as process:
        text = until(log, process, "$TOKEN")
        with pytest.raises(Forbidden):
            call(served(text), "note", {}, token_of(text))
        claims = jwt.decode(token_of(text), options={"verify_signature": False})
        assert (claims["sub"], claims["scope"]) == ("dev", "diary:write")
        process.send_signal(signal.SIGINT)
        process.wait(20)


def test_a_generated_server_has_no_such_option(guarded: Path) -> None:
    assert stubwright("generate", cwd=guarded).returncode == 0
    done = forked.python(["-m", "diary_mcp", "--help"], guarded, [guarded / "generated", guarded])
    assert done.returncode == 0, done.stderr
    assert "verif" not in done.stdout
    assert "token" not in done.stdout.casefold()


@pytest.mark.parametrize(
    ("options", "said"),
    amounts.sample(
        [
            (
                ["--scope", "diary:wirte"],
                "--scope is `diary:wirte`, which the manifest does not declare; did you mean `diary:write`?",
            ),
            (["--scope", "other"], "the scopes are `diary:read`, `diary:write`"),
            (["--as", "ann"], "--as requires --scope"),
        ],
        1,
    ),
)
def test_wrong_options_end_it(guarded: Path, options: list[str], said: str) -> None:
    done = stubwright("dev", "--http", "127.0.0.1:0", *options, cwd=guarded)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_server_without_tokens_has_none_to_give(project: Path) -> None:
    done = stubwright("dev", "--http", "127.0.0.1:0", "--scope", "diary:read", cwd=project)
    assert done.returncode == 2
    assert "--scope is for servers that require tokens; `diary.yaml` has no `auth`" in done.stderr


def test_scopes_come_from_all_parts_of_a_manifest() -> None:
    policy = {"stubwright": {"policy": {"scopes": ["c", "a"]}}}
    document = {
        "auth": {"requiredScopes": ["a"], "scopes": {"admin": ["b"]}},
        "policy": {"scopes": ["of-all"]},
        "tools": [{"name": "x"}, policy],
        "prompts": [policy],
    }
    assert list_scopes(document) == ("a", "of-all", "c", "admin", "b")


def until(log: Path, process: subprocess.Popen[Any], words: str, times: int = 1) -> str:
    end = time.monotonic() + 60
    while (text := log.read_text()).count(words) < times:
        assert time.monotonic() < end, text
        assert process.poll() is None, text
        time.sleep(0.02)
    return text


def token_of(text: str) -> str:
    found = re.search(r"^TOKEN=(ey\S+)$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]
