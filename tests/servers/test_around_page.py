"""The recipes for `around` in `docs/handlers.md`, and a transaction, in handlers of a generated package."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import httpx2
import pytest
from conftest import ROOT
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken

from packages import generate, imported, manifest, tool

PAGE: Final = (ROOT / "docs" / "handlers.md").read_text("utf-8")
RECIPES: Final = dict(re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

TEXT: Final = {"type": "string"}
FLAG: Final = {"type": "boolean"}
CENTS: Final = {"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]}


def closed_tool(name: str, properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A tool that takes exactly these properties, and returns cents."""
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {**tool(name), "inputSchema": schema, "outputSchema": CENTS, **more}


MANIFEST: Final = manifest(
    [
        closed_tool("get_balance", {"account": TEXT}),
        closed_tool(
            "transfer",
            {"source": TEXT, "target": TEXT, "cents": {"type": "integer"}},
            stubwright={
                "policy": {"timeout": "500ms"},
                "ask": {"sure": {"message": "Sure?", "schema": {"type": "object", "properties": {"sure": FLAG}}}},
            },
        ),
    ],
    name="accounts",
)

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("around_page")
    generate(folder, MANIFEST)
    for name, text in RECIPES.items():
        (folder / f"recipe_{name}.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def package(folder: Path) -> Iterator[ModuleType]:
    with imported(folder, "accounts_mcp") as module:
        yield module


def recipe(name: str) -> Any:
    """The module of a recipe, whose package is imported."""
    return import_module(f"recipe_{name}")


def connect(package: ModuleType, handlers: object, **options: Any) -> Any:
    return package.AccountsClient.connect(package.build_server(handlers), raise_errors=True, **options)


def test_each_recipe_is_short_and_tested() -> None:
    assert list(RECIPES) == ["tenants", "cache"]
    section = PAGE.partition("\n### Recipes for `around`\n")[2].partition("\n## ")[0]
    assert len(RECIPES) == section.count("```python")
    for name in RECIPES:
        assert len([line for line in RECIPES[name].splitlines() if line]) < 20, name


@pytest.mark.long
def test_the_recipes_are_typed(folder: Path, mypy: list[str]) -> None:
    names = [f"recipe_{name}.py" for name in RECIPES]
    run = subprocess.run([*mypy, *names], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


async def test_a_transaction(package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("accounts.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE account (name TEXT, cents INTEGER)")
        connection.executemany("INSERT INTO account VALUES (?, ?)", [("rent", 500), ("food", 0)])
    database: ContextVar[sqlite3.Connection] = ContextVar("database")

    class Handlers:
        async def around(self, call: Any, proceed: Any) -> object:
            with closing(sqlite3.connect("accounts.sqlite", check_same_thread=False)) as connection, connection:
                database.set(connection)
                return await proceed()

        def get_balance(self, args: Any, ctx: Any) -> Any:
            [cents] = database.get().execute("SELECT cents FROM account WHERE name = ?", [args.account]).fetchone()
            return {"cents": cents}

        async def transfer(self, args: Any, ctx: Any) -> Any:
            change = "UPDATE account SET cents = cents + ? WHERE name = ?"
            database.get().execute(change, [-args.cents, args.source])
            match args.target:
                case "nowhere":
                    raise package.ToolError("There is no account nowhere.")
                case "slow":
                    await asyncio.sleep(60)
                case "unsure":
                    await ctx.ask.sure()
            database.get().execute(change, [args.cents, args.target])
            return {"cents": "many"} if args.target == "odd" else {"cents": args.cents}

    async with connect(package, Handlers(), on_question=lambda _: {"sure": True}) as client:

        async def left_after_transfer(target: str) -> int:
            with suppress(package.ToolFailed, TypeError):
                await client.transfer(source="rent", target=target, cents=100)
            return int((await client.get_balance(account="rent")).cents)

        targets = ("nowhere", "slow", "food", "unsure", "odd")
        assert [await left_after_transfer(target) for target in targets] == [500, 500, 400, 300, 200]
        assert (await client.get_balance(account="food")).cents == 100


class Tokens:
    """Takes a tenant's name for a token of it."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="tests", subject="ann", scopes=[], claims={"tenant": token})


async def test_tenants(package: ModuleType) -> None:
    class Handlers(recipe("tenants").Accounts):  # type: ignore[misc]  # its base is found at run time
        async def transfer(self, args: Any, ctx: Any) -> Any:
            raise AssertionError(args)

    async def read_balance(tenant: str) -> int:
        transport = streamable_http_client("http://localhost/mcp", http_client=web)
        web.headers["authorization"] = f"Bearer {tenant}"
        async with package.AccountsClient.connect(transport) as client:
            return int((await client.get_balance(account="rent")).cents)

    app = package.asgi_app(Handlers(), token_verifier=Tokens())
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as web,
    ):
        assert [await read_balance(tenant) for tenant in ("red", "blue", "red")] == [500, 900, 500]
        with pytest.raises(package.ToolFailed, match="not for any of our tenants"):
            await read_balance("green")
    async with connect(package, Handlers()) as local:
        with pytest.raises(package.ToolFailed, match="not for any of our tenants"):
            await local.get_balance(account="rent")


@pytest.mark.long
async def test_a_cache(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Handlers(recipe("cache").Accounts):  # type: ignore[misc]  # its base is found at run time
        async def get_balance(self, args: Any, ctx: Any) -> Any:
            calls.append(args.account)
            return {"cents": len(calls)}

        async def transfer(self, args: Any, ctx: Any) -> Any:
            calls.append("transfer")
            return {"cents": args.cents}

    handlers = Handlers()
    async with connect(package, handlers) as client:
        for _ in range(2):
            assert (await client.get_balance(account="rent")).cents == 1
            await client.transfer(source="rent", target="food", cents=1)
        assert calls == ["rent", "transfer", "transfer"]
        handlers.cache = {key: (at - 11, value) for key, (at, value) in handlers.cache.items()}
        assert (await client.get_balance(account="rent")).cents == 4
        for number in range(1001):
            await client.get_balance(account=str(number))
        assert len(handlers.cache) <= 1000
