"""The committed databases of `specs/database.yaml`: permitted and rejected statements.

The clients are the generated client and the SDK's, in memory, over stdio and over HTTP, in both eras.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import httpx2
import mcp
import mcp_types as types
import pytest
from conftest import ROOT
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken

import amounts
import conformance
import forked
from hostile_sql import ENDLESS, HOSTILE
from packages import imported
from serving import asgi

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
WAYS = pytest.mark.parametrize("way", ["stdio", amounts.mark_long("http")])
BOTH = pytest.mark.parametrize(
    ("way", "era"),
    [
        *[("stdio", "2025-11-25"), ("http", "2026-07-28")],
        *map(amounts.mark_long, [("stdio", "2026-07-28"), ("http", "2025-11-25")]),
    ],
)
"""Each way and each era once, and the other combinations as long tests."""
PATH = os.pathsep.join(map(str, conformance.paths()))
TIMEOUT = 2.0
"""Seconds, as the manifest says."""

FULL = "execute_sql runs 4 calls at a time; try again when one has finished."


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def database() -> Iterator[ModuleType]:
    """Generate the package with its handlers."""
    examples = ROOT / "examples"
    with (
        imported(ROOT / "generated", "database_mcp") as package,
        imported(examples, "database_guard"),
        imported(examples, "database"),
    ):
        yield package


@pytest.fixture
def folder(tmp_path: Path, database: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two databases, which the server serves."""
    made = tmp_path / "databases"
    made.mkdir()
    for name in ("library", "second"):
        connection = sqlite3.connect(made / f"{name}.sqlite")
        connection.executescript(importlib.import_module("database").SCHEMA)
        connection.close()
    monkeypatch.setenv("DATABASES", str(made))
    return made


def handlers() -> Any:
    return importlib.import_module("database").Databases()


def digests(folder: Path) -> dict[str, str]:
    """The bytes of all files below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Verifier:
    """Takes tokens that are a subject and scopes: `ann db:read`."""

    async def verify_token(self, token: str) -> AccessToken | None:
        subject, *scopes = token.split(".")
        claims = {"iss": "https://auth.example.com", "sub": subject}
        if subject == "nobody":
            return None
        return AccessToken(token="", client_id="c", scopes=scopes, subject=subject, claims=claims)


def server(scope: str) -> list[str]:
    """The command of the server, for a local user with a scope."""
    return [*forked.interpreter(), "-m", "database_mcp", "--scope", scope]


@asynccontextmanager
async def connected(
    way: str, era: str, package: ModuleType, scope: str = "db:read", audit: Path | None = None, **more: Any
) -> AsyncIterator[Any]:
    """The SDK's client of the server, for a user with a scope."""
    mode = era if era == "2026-07-28" else "legacy"
    if way == "stdio":
        command, *arguments = [*server(scope), *(["--audit", str(audit)] if audit else [])]
        target: Any = mcp.StdioServerParameters(command=command, args=arguments, env={**os.environ, "PYTHONPATH": PATH})
        async with mcp.Client(target, mode=mode, **more) as client:
            assert client.session.protocol_version == era
            yield client
        return
    with asgi(package.asgi_app(handlers(), token_verifier=Verifier(), audit=audit)) as url:
        headers = {"Authorization": f"Bearer ann.{scope}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as web,
            mcp.Client(streamable_http_client(f"{url}/mcp", http_client=web), mode=mode, **more) as client,
        ):
            assert client.session.protocol_version == era
            yield client


@asynccontextmanager
async def typed(package: ModuleType, *scopes: str, **more: Any) -> AsyncIterator[Any]:
    """The generated client of a server in this process."""
    server = package.build_server(handlers(), local_scopes=scopes or ("db:read",))
    async with package.DatabaseClient.connect(server, **more) as client:
        yield client


async def ask(client: Any, sql: str, tool: str = "execute_sql", **more: Any) -> tuple[str | None, Any]:
    """What the SDK's client is told, and the structured result."""
    result = await client.call_tool(tool, {"database": "library", "sql": sql, **more})
    if not result.is_error:
        return None, result.structured_content
    assert result.structured_content is None
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text, None


# What statements can do


@pytest.mark.long
@BOTH
async def test_hostile_statements(way: str, era: str, database: ModuleType, folder: Path) -> None:
    before = digests(folder.parent)
    for some in (HOSTILE[:50], HOSTILE[50:]):  # up to the limit of a minute
        async with connected(way, era, database) as client:
            for statement in some:
                sql = statement.sql.replace("{folder}", str(folder))
                said, result = await ask(client, sql)
                if statement.says is None:
                    assert (said, result and result["rows"]) == (None, statement.rows), sql[:200]
                else:
                    assert statement.says in str(said), sql[:200]
    assert digests(folder.parent) == before


def test_there_are_more_than_twenty() -> None:
    assert len({statement.sql for statement in HOSTILE}) == len(HOSTILE) > 20


@pytest.mark.parametrize("kept_by", ["authorizer", "mode"])
def test_each_of_two_keeps_the_file_alone(kept_by: str, folder: Path) -> None:
    guard = importlib.import_module("database_guard")
    file = folder / "library.sqlite"
    before = digests(folder)
    refused = 0
    for statement in HOSTILE:
        if statement.says is None or "{folder}" in statement.sql or "WITH RECURSIVE" in statement.sql:
            continue
        with guard.opened(file, may_write=kept_by == "authorizer", stop=lambda function: None) as connection:
            if kept_by == "authorizer":
                connection.set_authorizer(guard.reading)
            try:
                connection.execute(statement.sql).fetchmany(1)
            except guard.REFUSALS:
                refused += 1
    assert refused > 20
    assert digests(folder) == before
    with guard.opened(file, may_write=True, stop=lambda function: None) as connection:
        connection.execute("REPLACE INTO author VALUES (9, 'x')")
    assert digests(folder) != before


def test_only_prepared_tables_of_sqlite_are_there(folder: Path) -> None:
    """Full-text search works, though it declares tables and asks for pragmas itself."""
    guard = importlib.import_module("database_guard")
    file = folder / "second.sqlite"
    made = sqlite3.connect(file)
    made.executescript(
        'CREATE VIRTUAL TABLE "a ""b" USING fts5(x); INSERT INTO "a ""b" VALUES (\'one two\'), (\'three\')'
    )
    made.close()
    before = digests(folder)
    with guard.opened(file, may_write=False, stop=lambda function: None) as connection:
        connection.set_authorizer(guard.reading)
        found = connection.execute('SELECT x FROM "a ""b" WHERE x MATCH \'two\'').fetchall()
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            connection.execute('INSERT INTO "a ""b" ("a ""b") VALUES (\'optimize\')')
    assert found == [("one two",)]
    assert digests(folder) == before


# How long they run


@pytest.mark.long  # four statements, each on its own core until the timeout
@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("era", ["2026-07-28", "2025-11-25"])
async def test_what_does_not_end_is_ended(way: str, era: str, database: ModuleType, folder: Path) -> None:
    async with connected(way, era, database) as client:
        assert await ask(client, "SELECT 1") != (None, None)
        said: list[str | None] = []

        async def run(sql: str) -> None:
            said.append((await ask(client, sql))[0])

        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            for sql in ENDLESS:
                tasks.start_soon(run, sql)
            await anyio.sleep(TIMEOUT / 2)
            full, _ = await ask(client, "SELECT 1")
        took = time.monotonic() - began
        free = await when_free(client)
    assert full == FULL
    assert {text and text.partition(" and was stopped")[0] for text in said} == {"execute_sql took longer than 2s"}
    assert len(said) == len(ENDLESS) == 4
    assert TIMEOUT <= took < TIMEOUT + 3
    assert free["rows"] == [[1]]


async def when_free(client: Any) -> Any:
    """What a statement gives once there is room: threads end soon after their calls."""
    with anyio.fail_after(30):
        while True:
            text, structured = await ask(client, "SELECT 1")
            if text != FULL:
                return structured
            await anyio.sleep(0.6)  # the rate allows 60 calls a minute


async def test_a_call_that_is_given_up_is_ended(database: ModuleType, folder: Path) -> None:
    async with typed(database) as client:

        async def run(sql: str) -> None:
            await client.execute_sql(database="library", sql=sql)

        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            for sql in ENDLESS:
                tasks.start_soon(run, sql)
            await anyio.sleep(0.3)
            tasks.cancel_scope.cancel()
        await anyio.sleep(0.2)
        found = await client.execute_sql(database="library", sql="SELECT 1")
    assert time.monotonic() - began < TIMEOUT
    assert found.rows == [[1]]


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process tells its own peak")
async def test_memory_stays_bounded(database: ModuleType, folder: Path) -> None:
    bombs = [statement.sql for statement in HOSTILE if statement.says and "memory" in statement.says]
    assert len(bombs) == 3
    command = [sys.executable, "-c", BOMBED, str(folder / "library.sqlite"), *bombs]
    done = await anyio.run_process(command, env={**os.environ, "PYTHONPATH": str(ROOT / "examples")})
    peaks = [int(line) for line in done.stdout.split()]
    assert len(peaks) == len(bombs)
    assert max(peaks) < 200 * 1024


BOMBED = """
import re, sys
from pathlib import Path
import database_guard as guard
for sql in sys.argv[2:]:
    with guard.opened(Path(sys.argv[1]), may_write=False, stop=lambda function: None) as connection:
        connection.set_authorizer(guard.reading)
        try:
            connection.execute(sql).fetchone()
        except MemoryError:
            print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""
"""Prints the peak of memory, in KiB, after each statement that is refused."""


# What comes back


@BOTH
async def test_results_come_in_pages(way: str, era: str, database: ModuleType, folder: Path) -> None:
    sql = "SELECT id, reader FROM loan WHERE id > ? ORDER BY id"
    async with connected(way, era, database) as client:
        rows, cursors = await pages(client, sql, parameters=[10], limit=150)
        assert cursors == ["150", "300", None]
        assert [row[0] for row in rows] == list(range(11, 401))
        large = "SELECT id, printf('%*d', ?, id) AS text FROM loan ORDER BY id LIMIT 20"
        rows, cursors = await pages(client, large, parameters=[20_000])
        assert cursors == ["3", "6", "9", "12", "15", "18", None]
        assert [row[0] for row in rows] == list(range(1, 21))
        said, _ = await ask(client, large, parameters=[200_000])
        assert said is not None
        assert re.match(r"The result of execute_sql is too large: 4\d\d,\d{3} bytes; the limit is 262,144\.", said)
        said, _ = await ask(client, "SELECT substr(text, 1, 10) FROM (" + large + ")", parameters=[200_000])
        assert said is None
        said, _ = await ask(client, "SELECT 1", parameters=["x" * 70_000])
        assert str(said).startswith("The arguments of execute_sql are too large:")


async def pages(client: Any, sql: str, **more: Any) -> tuple[list[Any], list[str | None]]:
    """All rows of a statement, and the cursor of each page."""
    rows: list[Any] = []
    cursors: list[str | None] = []
    while not cursors or cursors[-1] is not None:
        given: dict[str, Any] = {"cursor": cursors[-1]} if cursors else {}
        said, page = await ask(client, sql, **more, **given)
        assert said is None, said
        rows += page["rows"]
        cursors.append(page["next_cursor"])
    return rows, cursors


async def test_values_keep_what_they_are(database: ModuleType, folder: Path) -> None:
    values = [
        None, 1, -1.5, "text", "", "1", 2**53 - 1,
        database.Exact(type="integer", text=str(2**53)), database.Exact(type="integer", text=str(-(2**63))),
        database.Exact(type="real", text="-Infinity"), database.Exact(type="blob", text="AP8="),
        database.Exact(type="blob", text=""),
    ]  # fmt: skip
    types = ["null", "integer", "real", *["text"] * 3, *["integer"] * 3, "real", "blob", "blob"]
    async with typed(database) as client:
        sql = f"SELECT {', '.join('?' * len(values))}"
        page = await client.execute_sql(database="library", sql=sql, parameters=values)
        again = await client.execute_sql(database="library", sql=sql, parameters=page.rows[0])
        mixed = await client.execute_sql(database="library", sql="SELECT 1 AS one UNION SELECT 'a' UNION SELECT NULL")
        nothing = await client.execute_sql(database="library", sql="SELECT * FROM book WHERE id < 0")
    assert page.rows == [values] == again.rows
    assert [column.types for column in page.columns] == [[type_] for type_ in types]
    assert [(column.name, column.types) for column in mixed.columns] == [("one", ["integer", "null", "text"])]
    assert [column.name for column in nothing.columns] == ["id", "title", "author", "year", "cover"]
    assert (nothing.rows, nothing.next_cursor) == ([], None)


@pytest.mark.parametrize(
    ("sql", "parameters", "says"),
    [
        ("SELECT ?", [], "uses 1, and there are 0 supplied"),
        ("SELECT 1", ["x"], "uses 0, and there are 1 supplied"),
        ("SELECT ?", [2**63], "Python int too large to convert to SQLite INTEGER"),
        ("SELECT ?", [{"type": "integer", "text": "9" * 5000}], "A parameter is no integer"),
        ("SELECT ?", [{"type": "blob", "text": "!!"}], "A parameter is no blob"),
        ("SELECT ?", [{"type": "real", "text": "much"}], "A parameter is no real"),
        ("SELECT ?", [True], "Invalid arguments for execute_sql"),
        ("SELECT missing", [], "no such column: missing"),
        ("SELECT '" + "x" * 20_000 + "'", [], "sql: expected at most 20000 characters"),
    ],
)
async def test_what_cannot_be_run_is_told(
    sql: str, parameters: list[Any], says: str, database: ModuleType, folder: Path
) -> None:
    async with typed(database) as client:
        with pytest.raises(database.ToolFailed) as caught:
            await client.execute_sql(database="library", sql=sql, parameters=parameters)
    assert says in str(caught.value)


# Which database


@pytest.mark.parametrize(
    "name",
    amounts.sample(
        [
            *(
                "../library",
                "../../secret",
                "/etc/passwd",
                "library.sqlite",
                "library?mode=rw&x=",
                "library%00",
                "library\0",
            ),
            *("file:library", "LIBRARY", "", ".", "..", "*", "linked", "C:\\library", "\uff4cibrary"),
        ],
        8,
    ),
)
async def test_no_name_leads_out_of_the_folder(name: str, database: ModuleType, folder: Path) -> None:
    secret = folder.parent / "secret.sqlite"
    secret.write_bytes((folder / "library.sqlite").read_bytes())
    (folder / "linked.sqlite").symlink_to(secret)
    async with typed(database) as client:
        with pytest.raises(database.ToolFailed, match=r"There is no database .*there are: library, second"):
            await client.execute_sql(database=name, sql="SELECT 1")
        with pytest.raises(database.ToolFailed, match="There is no database"):
            await client.list_tables(database=name)
        with pytest.raises(mcp.MCPError, match=r"Unknown resource|not found"):
            await client.read_table(database=name or "%", table="book")
        assert (await client.complete_read_table("table", "", {"database": name})).values == []


async def test_what_is_no_database_is_told(database: ModuleType, folder: Path) -> None:
    (folder / "second.sqlite").write_text("This is text, not a database, and as long as the header of one. " * 9)
    async with typed(database) as client:
        with pytest.raises(database.ToolFailed, match="file is not a database"):
            await client.execute_sql(database="second", sql="SELECT 1 FROM book")


async def test_tables_are_told(database: ModuleType, folder: Path) -> None:
    async with typed(database) as client:
        tables = (await client.list_tables(database="library")).tables
        [names] = await client.read_databases()
        [text] = await client.read_table(database="library", table="book")
        with pytest.raises(mcp.MCPError, match="db://library/tables/no-such-table"):
            await client.read_table(database="library", table="no-such-table")
        assert (await client.complete_read_table("database", "l")).values == ["library"]
        assert (await client.complete_read_table("table", "", {"database": "library"})).values == [
            *("author", "book", "lent", "loan")
        ]
    assert json.loads(names.text) == ["library", "second"]
    assert [(table.name, table.kind) for table in tables] == [
        *(("author", "table"), ("book", "table"), ("lent", "view"), ("loan", "table"))
    ]
    assert [(column.name, column.type, column.required, column.key) for column in tables[1].columns[:2]] == [
        *(("id", "INTEGER", False, True), ("title", "TEXT", True, False))
    ]
    assert text.text.startswith("CREATE TABLE book (")
    assert "CREATE TRIGGER book_is_lent" in text.text
    assert text.mime_type == "application/sql"


async def test_the_header_of_the_database_is_checked(database: ModuleType, folder: Path) -> None:
    with asgi(database.asgi_app(handlers(), token_verifier=Verifier())) as url:
        statuses = {}
        for header in ("library", "second"):
            response = await post(url, "ann.db:read", "2026-07-28", {"mcp-param-database": header})
            statuses[header] = response.status_code
    assert statuses == {"library": 200, "second": 400}


async def post(
    url: str, token: str | None, era: str, headers: dict[str, str] | None = None, tool: str = "execute_sql"
) -> httpx2.Response:
    """Return the HTTP response to a tool call by a client of 2026-07-28, or by a client without a handshake."""
    sent = {"accept": "application/json, text/event-stream", "mcp-protocol-version": era, **(headers or {})}
    params: dict[str, Any] = {"name": tool, "arguments": {"database": "library", "sql": "SELECT 1"}}
    if era == "2026-07-28":
        sent |= {"mcp-method": "tools/call", "mcp-name": tool}
        sent.setdefault("mcp-param-database", "library")
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    if token is not None:
        sent["authorization"] = f"Bearer {token}"
    async with httpx2.AsyncClient() as client:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return await client.post(f"{url}/mcp", json=request, headers=sent)


# Who may


@ERAS
async def test_over_http_a_token_and_its_scopes_count(era: str, database: ModuleType, folder: Path) -> None:
    with asgi(database.asgi_app(handlers(), token_verifier=Verifier())) as url:
        without = await post(url, None, era)
        wrong = await post(url, "nobody", era)
        few = await post(url, "ann", era)
        reader = await post(url, "ann.db:read", era, tool="execute_write")
        metadata = (await httpx2.AsyncClient().get(f"{url}/.well-known/oauth-protected-resource/mcp")).json()
    where = 'resource_metadata="https://database.example.com/.well-known/oauth-protected-resource/mcp"'
    assert [answer.status_code for answer in (without, wrong, few, reader)] == [401, 401, 403, 403]
    for answer in (without, wrong, few, reader):
        assert where in answer.headers["www-authenticate"]
    assert 'scope="db:read"' in few.headers["www-authenticate"]
    assert 'scope="db:write"' in reader.headers["www-authenticate"]
    assert metadata["authorization_servers"] == ["https://auth.example.com"]
    assert metadata["scopes_supported"] == ["db:read", "db:write"]


@BOTH
async def test_without_a_scope_nothing_is_there(way: str, era: str, database: ModuleType, folder: Path) -> None:
    async with connected(way, era, database, "other") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
    challenged = way == "http"  # where a client can ask for more
    assert tools == (["list_tables", "execute_sql", "execute_write"] if challenged else [])
    assert resources == (["db://databases"] if challenged else [])


class User:
    """Who answers whether something may be done."""

    def __init__(self, *, agrees: bool = True) -> None:
        self.agrees = agrees
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.asked.append(params.message)
        return types.ElicitResult(
            action="accept", content=dict.fromkeys(params.requested_schema["properties"], self.agrees)
        )


@BOTH
async def test_writing_takes_a_scope_and_leave(way: str, era: str, database: ModuleType, folder: Path) -> None:
    sql, values = "UPDATE book SET year = ? WHERE id < 3", [1800]
    user = User()
    before = digests(folder)
    async with connected(way, era, database, "db:write", elicitation_callback=user) as client:
        user.agrees = False
        said, _ = await ask(client, sql, "execute_write", parameters=values)
        assert said == "The user declined: execute_write did not run."
        assert digests(folder) == before
        user.agrees = True
        assert await ask(client, sql, "execute_write", parameters=values) == (None, {"changed": 2})
        _, page = await ask(client, "SELECT DISTINCT year FROM book WHERE id < 3")  # who may write may read
        for refused, says in (
            ("DELETE FROM book", "the book has loans"),
            ("INSERT INTO loan (book, reader, day) VALUES (77, 'x', 'y')", "FOREIGN KEY constraint failed"),
            ("DROP TABLE loan", "not authorized"),
            ("UPDATE SQLITE_MASTER SET sql = ''", "may not be modified"),
            ("COMMIT", "not authorized"),
        ):
            said, _ = await ask(client, refused, "execute_write")
            assert says in str(said)
    assert user.asked[0] == f'Change the database library? {sql}\nAlso: {{"parameters": [1800]}}'
    assert page["rows"] == [[1800]]
    after = digests(folder)
    assert {name for name in after if after[name] != before[name]} == {"library.sqlite"}
    async with connected(way, era, database, "db:write") as client:  # which cannot ask a user
        if era == "2026-07-28":
            with pytest.raises(mcp.MCPError, match="execute_write requires") as missing:
                await ask(client, sql, "execute_write", parameters=values)
            assert missing.value.error.code == -32021
        else:
            said, _ = await ask(client, sql, "execute_write", parameters=values)
            assert "execute_write" in str(said)
            assert "elicitation" in str(said)
    assert digests(folder) == after


@pytest.mark.long
async def test_a_write_that_takes_too_long_leaves_nothing(database: ModuleType, folder: Path) -> None:
    async def agree(question: Any) -> dict[str, Any]:
        return dict.fromkeys(question.schema["properties"], True)

    before = digests(folder)
    sql = "INSERT INTO author (name) SELECT a.day FROM loan AS a, loan AS b, loan AS c, loan AS d"
    async with typed(database, "db:write", "db:read", on_question=agree) as client:
        with pytest.raises(database.ToolFailed, match="took longer than 2s"):
            await client.execute_write(database="library", sql=sql)
        page = await client.execute_sql(database="library", sql="SELECT count(*) FROM author")
    assert page.rows == [[4]]
    assert digests(folder) == before


@pytest.mark.long
@WAYS
async def test_so_many_calls_a_minute(way: str, database: ModuleType, folder: Path) -> None:
    async with connected(way, "2026-07-28", database) as client:
        said = [(await ask(client, "SELECT 1"))[0] for _ in range(61)]
    assert said[:60] == [None] * 60
    assert re.fullmatch(
        r"execute_sql may be called 60 times in a minute; the limit is reached\. Try again in \d+ seconds\.",
        str(said[60]),
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "era"),
    [
        ("stdio", "2025-11-25"),
        *map(amounts.mark_long, [("stdio", "2026-07-28"), ("http", "2025-11-25"), ("http", "2026-07-28")]),
    ],
)
async def test_each_call_is_recorded(way: str, era: str, database: ModuleType, folder: Path) -> None:
    record = folder.parent / "calls.jsonl"
    sql = "SELECT title FROM book WHERE title = ?"
    async with connected(way, era, database, audit=record) as client:
        assert (await ask(client, sql, parameters=["Emma"]))[0] is None
        assert (await ask(client, "DROP TABLE book"))[0] is not None
        assert (await ask(client, ENDLESS[0]))[0] is not None
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(line["outcome"], line["reason"], line["arguments"]["sql"]) for line in lines] == [
        ("completed", None, sql),
        ("tool_error", "tool_error", "DROP TABLE book"),
        ("limited", "timeout", ENDLESS[0]),
    ]
    assert lines[0]["arguments"]["parameters"] == "[redacted]"
    assert {(line["principal"], line["subject"]) for line in lines} == {
        ("local", "local") if way == "stdio" else ("token", "ann")
    }
    assert "Emma" not in record.read_text()


async def test_a_database_comes_with_the_server(database: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASES", raising=False)
    made = handlers()
    async with database.DatabaseClient.connect(database.build_server(made, local_scopes=["db:read"])) as client:
        page = await client.execute_sql(database="library", sql="SELECT reader FROM lent ORDER BY day DESC", limit=1)
        assert made.folder.is_dir()
    assert page.rows == [["reader 30"]]
    assert page.next_cursor == "1"
    assert not made.folder.exists()
