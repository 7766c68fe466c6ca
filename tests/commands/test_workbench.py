"""The page of `stubwright dev`: access, display of a run, and all its functions in a browser."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

import browser
from developing import Dev, dev
from editors import write
from stubwright.workbench import output
from stubwright.workbench.journal import Journal
from stubwright.workbench.server import Difference, RefusedError, Workbench

MANIFEST: Final = """\
stubwright: 1
server: {name: diary, version: 1.0.0, capabilities: {logging: true}}
python: {handlers: "diary:Diary"}
auth: {issuer: "https://auth.example.com", audience: "https://diary.example.com/mcp", requiredScopes: [diary:read]}
tools:
  - name: lend
    description: Lends a book.
    inputSchema:
      type: object
      properties:
        title: {type: string, description: Of the book}
        days: {type: integer}
        shelf: {$ref: "#/$defs/Shelf"}
      required: [title]
      $defs: {Shelf: {enum: [red, blue]}}
    outputSchema: {type: object, properties: {days: {type: integer}, shelf: {type: string}, sure: {type: boolean}}}
    stubwright:
      policy: {scopes: [diary:write]}
      ask:
        sure:
          message: Is it really yours?
          schema: {type: object, properties: {sure: {type: boolean}}, required: [sure]}
  - {name: fail, description: Fails., inputSchema: {type: object}}
  - {name: whoami, description: Says who asks., inputSchema: {type: object}}
  - name: plan
    description: Repeats a plan. <img src=x onerror=alert(1)>
    inputSchema:
      type: object
      properties:
        day: {type: string, format: date}
        at: {type: string, format: date-time}
        stops:
          type: array
          minItems: 1
          items: {type: object, properties: {city: {type: string}, nights: {type: integer}}, required: [city]}
        more: {type: object, additionalProperties: {type: integer}, examples: [{rooms: 2}]}
        constructor: {type: string}
    stubwright: {policy: {confirm: true}}
  - name: books
    description: Lists books.
    inputSchema: {type: object, properties: {cursor: {type: string}}}
    outputSchema:
      type: object
      properties:
        books: {type: array, items: {type: object, properties: {title: {type: string}, pages: {type: integer}}}}
        next_cursor: {type: [string, "null"]}
  - {name: wait, description: Waits., inputSchema: {type: object}}
resources:
  - {uri: "diary://cover", name: cover, mimeType: image/png, stubwright: {file: ./pixel.png}}
resourceTemplates:
  - uriTemplate: "diary://books/{title}"
    name: book
    stubwright: {complete: {title: [Dune, Duma Key]}}
prompts:
  - name: letter
    arguments: [{name: tone}]
    stubwright: {messages: [{role: user, text: "Write in {{tone}}."}], complete: {tone: [prose]}}
"""
ADDED: Final = MANIFEST.replace(
    "resources:\n", "  - {name: added, description: Is new., inputSchema: {type: object}}\nresources:\n"
)
HANDLERS: Final = """\
import asyncio
import sys
from diary_mcp import DiaryHandlers

class Diary(DiaryHandlers):
    async def lend(self, args, ctx):
        answer = await ctx.ask.sure()
        await ctx.log("info", "looking for it")
        await ctx.progress(1, 2, "half of it")
        return {"days": args.days, "shelf": args.shelf, "sure": answer.sure}

    async def fail(self, args, ctx):
        print("handler printed", file=sys.stderr)
        raise RuntimeError("broken shelf")

    async def whoami(self, args, ctx):
        return f"{ctx.principal.subject} of {ctx.principal.claims.get('tenant')}"

    async def plan(self, args, ctx):
        return args.model_dump_json(exclude_unset=True)

    async def books(self, args, ctx):
        first = not args.cursor
        books = [{"title": title, "pages": 1} for title in (["<b>Dune", "Emma"] if first else ["Ulysses"])]
        return {"books": books, "next_cursor": "2" if first else None}

    async def read_book(self, args, ctx):
        if args.title == "Lost":
            raise RuntimeError("no such book")
        return f"This is {args.title}."

    async def wait(self, args, ctx):
        await ctx.progress(1)
        await asyncio.sleep(60)

    async def added(self, args, ctx):
        return "new"
"""


def test_lines_of_a_server_are_told_apart() -> None:
    record = output.read_line("2026-11-26 11:01:47,144 WARNING diary_mcp.handlers: it is: held")
    assert (record.kind, record.details["level"], record.details["text"]) == (
        "log",
        "WARNING",
        "it is: held",
    )
    assert output.read_line("  File handlers.py").kind == "more"
    assert output.read_line('{"time": "x"}').kind == output.read_line('{"time": ').kind == "print"
    call = {
        "time": "2026-11-26T10:48:47.902Z",
        "tool": "lend",
        "outcome": "denied",
        "reason": "scope",
        "duration_ms": 3.6,
    }
    line = output.read_line(json.dumps({**call, "result_bytes": 1200}))
    assert (line.kind, line.printed) == ("call", "lend: denied (scope) in 4 ms, 1,200 bytes")
    assert output.read_line(json.dumps({**call, "tool": None})).printed == "a request: denied (scope) in 4 ms"
    failed = json.dumps({**call, "outcome": "tool_error", "reason": "tool_error"})
    assert output.read_line(failed).printed == "lend: tool_error in 4 ms"


def test_a_journal_keeps_the_last_events_and_lets_all_go_at_its_end() -> None:
    journal = Journal()
    assert journal.wait_after(0, 0.01) == []
    for number in range(1200):
        journal.add("print", text=str(number))
    events = journal.wait_after(0, 0)
    assert events is not None
    assert [(event.number, event.details["text"]) for event in (events[0], events[-1])] == [
        (201, "200"),
        (1200, "1199"),
    ]
    assert journal.wait_after(1199, 0) == [events[-1]]
    journal.close()
    assert journal.wait_after(0, 60) is None


@contextmanager
def opened() -> Iterator[tuple[Workbench, httpx2.Client, str]]:
    """A workbench, a client that has its cookie, and its address."""
    with Workbench("127.0.0.1", 0) as bench:
        bench.content.page, bench.content.docs = "<p>the page", "<p>the docs"
        address = bench.origins[0]
        with httpx2.Client(follow_redirects=True) as client:
            assert client.get(bench.url).text == "<p>the page"
            yield bench, client, address


def test_only_who_has_the_key_gets_the_page() -> None:
    with opened() as (bench, client, address):
        assert client.get(f"{address}/docs").text == "<p>the docs"
        for path in ("/", "/docs", "/events", "/difference", "/?key=", "/?key=wrong", f"/?key={bench.content.key}x"):
            assert httpx2.get(f"{address}{path}").status_code == 403, path
        assert httpx2.post(f"{address}/token", json={}).status_code == 403
        answer = httpx2.get(bench.url, follow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")
        assert {"HttpOnly", "SameSite=Strict"} <= set(answer.headers["Set-Cookie"].split("; "))
        assert client.get(f"{address}/").headers["Cache-Control"] == "no-store"
        assert client.get(f"{address}/elsewhere").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "127.0.0.1"}, {"Origin": "http://evil.example"}, {"Origin": "null"}],
)
def test_other_hosts_and_pages_get_nothing_with_the_key(headers: dict[str, str]) -> None:
    with opened() as (bench, client, address):
        bench.content.issue = lambda *_: "secret"
        wish = {"subject": "ann", "scopes": [], "claims": {}}
        assert client.get(f"{address}/", headers=headers).status_code == 403
        assert client.get(bench.url, headers=headers).status_code == 403
        assert client.post(f"{address}/token", json=wish, headers=headers).status_code == 403
        assert client.post(f"{address}/token", json=wish, headers={"Origin": address}).json() == {"token": "secret"}


def test_other_methods_are_refused_in_plain_text() -> None:
    with opened() as (_, client, address):
        answer = client.put(f"{address}/", content=b"x")
        assert (answer.status_code, answer.text) == (501, "Unsupported method ('PUT')\n")
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["Connection"] == "close"
        head = client.head(f"{address}/")
        assert (head.status_code, head.content) == (501, b"")
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as raw:
            raw.sendall(b"no request\r\n\r\n")
            assert b"Bad HTTP/0.9 request type" in raw.makefile("rb").read()
        assert client.get(f"{address}/").text == "<p>the page"


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (b"{", "The request body is not JSON"),
        (b"[]", "Send a subject"),
        (b'{"subject": "", "scopes": [], "claims": {}}', "Send a subject"),
        (b'{"subject": "a", "scopes": [1], "claims": {}}', "Send a subject"),
        (b'{"subject": "a", "scopes": [], "claims": {"exp": 1}}', "choose another claim"),
        (b" " * 70_000, "Send JSON of at most"),
    ],
)
def test_wrong_wishes_for_tokens_are_refused(wish: bytes, why: str) -> None:
    def refuse(*_: object) -> str:
        raise RefusedError("choose another claim")

    with opened() as (bench, client, address):
        assert client.post(f"{address}/token", content=wish).status_code == 404, "this run makes none"
        bench.content.issue = refuse
        media = {"Content-Type": "application/json"}
        answer = client.post(f"{address}/token", content=wish, headers=media)
        assert (answer.status_code, answer.text.startswith(why)) == (400, True), answer.text
        assert client.post(f"{address}/token", content=wish).status_code == 400, "another media type"


def test_what_happened_is_streamed_from_where_the_page_was() -> None:
    with opened() as (bench, client, address):
        bench.content.difference = Difference("1 breaking", "all of it")
        assert client.get(f"{address}/difference").json() == {"summary": "1 breaking", "text": "all of it"}
        for text in ("one", "two"):
            bench.content.journal.add("print", text=text)
        with client.stream("GET", f"{address}/events", headers={"Last-Event-ID": "1"}) as stream:
            lines = stream.iter_lines()
            assert [next(lines), json.loads(next(lines)[6:])] == ["id: 2", {"kind": "print", "text": "two"}]
            assert next(lines) == ""
            bench.content.journal.add("broken")
            assert [next(lines), json.loads(next(lines)[6:])] == ["id: 3", {"kind": "broken"}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "pyproject.toml", '[tool.stubwright]\nmanifests = ["diary.yaml"]\n')
    write(tmp_path / "diary.yaml", MANIFEST)
    write(tmp_path / "diary.py", HANDLERS)
    shutil.copy(Path(__file__).parents[2] / "specs" / "everything" / "files" / "pixel.png", tmp_path)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def address_of(it: Dev) -> str:
    found = re.search(r"open (http://\S+)", it.says("To try it, open "))
    assert found is not None
    return found[1]


def test_a_run_is_seen_in_the_terminal_and_on_the_page(project: Path) -> None:
    with (
        dev(project, "--scope", "diary:read", "--claim", "tenant=acme") as it,
        httpx2.Client(follow_redirects=True) as client,
    ):
        it.says("the list of 6 tools costs a model ")
        address = address_of(it)
        token = re.search(r"TOKEN=(\S+)", it.says("TOKEN="))
        assert token is not None
        it.says("since the last commit: nothing changed")
        text = client.get(address).text
        assert "http://127.0.0.1" in re.findall(r"connect-src &#39;self&#39; (\S+);", text)[0]
        data = json.loads(re.findall(r'id="workbench-data">(.*)</script>', text)[0])
        assert [entry["key"] for entry in data["entries"]] == [
            *("lend", "fail", "whoami", "plan", "books", "wait", "diary://cover", "diary://books/{title}", "letter")
        ]
        book, letter = data["entries"][-2:]
        assert (book["completes"], book["schema"]["properties"]) == (["title"], {"title": {"type": "string"}})
        assert (letter["completes"], letter["schema"]["required"]) == (["tone"], [])
        assert (data["bounds"]["minItems"], data["client"]["name"]) == ("at least {} item{s}", "DiaryClient")
        assert data["auth"]["claims"] == {"tenant": "acme"}
        headers = {"Authorization": f"Bearer {token[1]}", "Accept": "application/json, text/event-stream"}
        meta = {
            "io.modelcontextprotocol/protocolVersion": data["revision"],
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers |= {"MCP-Protocol-Version": data["revision"], "Mcp-Method": "tools/call", "Mcp-Name": "whoami"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami", "_meta": meta}}
        answer = httpx2.post(it.url, json=body, headers={**headers, "Origin": data_origin(address)})
        assert answer.json()["result"]["content"][0]["text"] == "dev of acme"
        assert answer.headers["Access-Control-Allow-Origin"] == data_origin(address)
        assert httpx2.post(it.url, json=body, headers={**headers, "Origin": "http://evil.example"}).status_code == 403
        it.says("whoami: completed in ")
        write(project / "diary.yaml", ADDED)
        it.says("since the last commit: 1 breaking, 2 compatible; suggested: a minor version, 1.0.0 → 1.1.0")
        write(project / "diary.yaml", "tools: [")
        it.says("the last valid version keeps running")
        assert "Is new." in client.get(address).text


def data_origin(address: str) -> str:
    return address.partition("/?")[0]


@pytest.mark.long
def test_options_of_the_page_are_checked(project: Path) -> None:
    with dev(project, "--no-page") as it:
        assert "To try it" not in it.says("interrupt to stop")
    for options, why in (
        (["--no-page", "--page", "127.0.0.1:0"], "contradict each other"),
        (["--page", "here"], "--page is 'here'"),
        (["--page", "192.0.2.1:80"], "the page cannot be served at 192.0.2.1:80: "),
        (["--page", "192.0.2.1:80"], "; `--page 127.0.0.1:0` uses any free port"),
        (["--claim", "a=1"], "--claim requires --scope"),
        (["--scope", "diary:read", "--claim", "exp=1"], "choose another claim"),
        (["--scope", "diary:read", "--claim", "a"], "expected NAME=VALUE"),
    ):
        with dev(project, *options) as it:
            assert it.process.wait(30) == 2, options
            assert why in it.log.read_text(), options


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> browser.Browser:
    return browser.find_once(tmp_path_factory)


@pytest.mark.long
def test_a_browser_tries_everything(chromium: browser.Browser, project: Path) -> None:
    with dev(project, "--scope", "diary:read", "--scope", "diary:write") as it:
        address = address_of(it)
        it.says("interrupt to stop")
        said: Any = chromium.run(
            Path(__file__).parents[1] / "peers" / "workbench.mjs",
            address,
            lambda: write(project / "diary.yaml", ADDED),
        )
    assert (said["errors"], said["violations"]) == ([], [])
    assert [line.partition(":")[2].split(" with ")[-1] for line in said["console"]] == ["a status of 400 (Bad Request)"]
    assert said["address"] == f"{data_origin(address)}/", "the key does not stay in the address"
    assert said["docs"] == "lend", "the documentation of the tool is open in another tab"
    assert said["panes"] == {"wide": "in sight", "phone": "one after the other"}
    assert said["outcome"] == "in sight", "also of a tool with a long name"
    assert said["labels"] == ["title required", "days", "shelf"]
    assert said["wrong"] == "many is not a number"
    assert said["question"] == "Is it really yours?"
    assert said["lent"][0].startswith("lend: completed in ")
    assert '"days": 12345678901234567890' in said["lent"][1]
    assert '"shelf": "blue"' in said["lent"][1]
    assert '"sure": true' in said["lent"][1]
    assert said["progress"] == [1, 2]
    assert "info: looking for it" in said["heard"]
    assert json.loads(said["json"]) == {"title": "Dûne ☃", "days": 12345678901234567890, "shelf": "blue"}
    assert said["failed"].startswith("fail: the tool failed (")
    assert (said["traceback"], said["blocked"]) == (1, 1)
    assert said["whoami"][1] == "bob of acme"
    assert said["refused"].startswith("lend: rejected by the server (scope, -32602)")
    assert said["kept"] == "Dûne ☃"
    assert said["summary"].startswith("1 breaking, 2 compatible")
    assert "`added`" in said["changes"]
    assert said["bounds"] == "at least 1 item"
    assert said["skeleton"] == {"rooms": 2}
    assert said["declined"].startswith("plan: rejected by the server (not_confirmed)")
    plan = json.loads(said["plan"])
    assert (plan["day"], plan["stops"]) == ("2026-12-24", [{"city": "Rome", "nights": 2}, {"city": "Bari"}])
    assert plan["more"] == {"rooms": 2}
    assert "constructor" not in plan
    assert said["lines"] == {"constructor": "two\nlines", "more": {}}
    assert datetime.fromisoformat(plan["at"]) == datetime(2026, 12, 24, 18, 30, tzinfo=UTC)
    assert said["books"] == [["title", "pages", "<b>Dune", "1", "Emma", "1"], ["title", "pages", "Ulysses", "1"]]
    assert {'+ "title": "Ulysses"', '- "title": "Emma"'} <= {
        " ".join(line.strip(",").split()) for line in said["difference"]
    }
    assert said["focus"] == ["Repeat", True, "plan", "INPUT"]
    assert said["same"] == "The results are identical."
    assert said["cancelled"] == "wait: cancelled"
    assert said["image"] == 1
    assert said["offered"] == [["Dune", "Duma Key"], ["prose"]]
    assert said["read"] == ["This is Dune.", "Write in prose."]
    assert said["raised"].startswith("diary://books/{title}: the server failed (-32603)")
    command, curl, python = said["copied"]
    assert shlex.split(command)[:4] == ["stubwright", "call", "--header", "Authorization: Bearer $TOKEN"]
    assert shlex.split(command)[5:] == ["plan", said["sent"]]
    assert json.loads(shlex.split(curl)[-1])["params"]["arguments"] == json.loads(said["sent"])
    assert ast.literal_eval(re.findall(r'call_tool\("plan", (.*)\)\)\n', python)[0]) == json.loads(said["sent"])
    assert said["history"] == said["recalled"], "calls outlive the page"
