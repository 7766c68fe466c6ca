"""Scopes: lists and responses by feature, caller, hierarchy, kind of rejection, transport and era."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import mcp
import pytest
from mcp.server.auth.provider import AccessToken

import amounts
import forked
import prompt_ends
from packages import generate, imported, manifest, tool
from server_fixture import ENVELOPE, HELLO, exchange, opened
from serving import asgi

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


HERE = "https://mcp.example.com/mcp"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
EVERYBODY = "mcp"
"""The scope that every caller over HTTP needs, and has here."""

NEEDED: Mapping[str, Sequence[str]] = {"none": (), "one": ("read",), "two": ("read", "write")}
HIERARCHIES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "none": {},
    "chain": {"admin": ["write"], "write": ["read"]},
    "circle": {"read": ["write"], "write": ["read"], "left": ["left"]},
    "diamond": {"admin": ["left", "right"], "left": ["read"], "right": ["read", "write"]},
}
HELD: Sequence[Sequence[str]] = ((), ("read",), ("write",), ("read", "write"), ("left",), ("admin",), ("other",))


def _extension(scopes: Sequence[str], **more: Any) -> dict[str, Any]:
    return {**({"policy": {"scopes": [*scopes]}} if scopes else {}), **more}


BASE: dict[str, Any] = manifest(
    [tool(name, stubwright=_extension(scopes)) for name, scopes in NEEDED.items()],
    name="vault",
    resources=[
        {"uri": f"res://{name}", "name": f"res {name}", "stubwright": _extension(scopes, text=name)}
        for name, scopes in NEEDED.items()
    ],
    resourceTemplates=[
        {
            "uriTemplate": f"tpl://{name}/{{x}}",
            "name": f"tpl {name}",
            "stubwright": _extension(scopes, complete={"x": ["value"]}),
        }
        for name, scopes in NEEDED.items()
    ],
    prompts=[
        {
            "name": name,
            "arguments": [{"name": "x"}],
            "stubwright": _extension(scopes, messages=[{"text": name}], complete={"x": ["value"]}),
        }
        for name, scopes in NEEDED.items()
    ],
    pageSize=2,
    auth={"issuer": "https://auth.example.com", "audience": HERE, "requiredScopes": [EVERYBODY]},
)

LISTS: Mapping[str, tuple[str, str]] = {
    "tools/list": ("tools", "{}"),
    "resources/list": ("resources", "res {}"),
    "resources/templates/list": ("resourceTemplates", "tpl {}"),
    "prompts/list": ("prompts", "{}"),
}

Asked = tuple[str, dict[str, Any]]


def _requests(name: str, revision: str) -> list[Asked]:
    """All that can be asked of the things with this name."""
    argument = {"name": "x", "value": "v"}
    subscribing: list[Asked] = [("resources/subscribe", {"uri": uri}) for uri in (f"res://{name}", f"tpl://{name}/1")]
    return [
        *(subscribing if revision < "2026" else []),
        ("tools/call", {"name": name, "arguments": {}}),
        ("resources/read", {"uri": f"res://{name}"}),
        ("resources/read", {"uri": f"tpl://{name}/1"}),
        ("prompts/get", {"name": name}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": name}, "argument": argument}),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": f"tpl://{name}/{{x}}"}, "argument": argument},
        ),
    ]


# The model.


def _closure(held: Sequence[str], hierarchy: Mapping[str, Sequence[str]]) -> set[str]:
    found = {*held}
    while more := {inner for scope in found for inner in hierarchy.get(scope, ())} - found:
        found |= more
    return found


def _expected(name: str, held: Sequence[str], hierarchy: str, on_missing: str, *, over_http: bool) -> tuple[bool, str]:
    """Return whether a feature is listed, and the expected response."""
    if {*NEEDED[name]} <= _closure(held, HIERARCHIES[hierarchy]):
        return True, "served"
    return (True, "403") if over_http and on_missing == "challenge" else (False, "absent")


# The ways to ask.

Ask = Callable[[Sequence[str], str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request with scopes; returns `result`, `error` or, for a rejection over HTTP, `status` and `header`."""


class Verifier:
    """Takes a list of scopes as a token; all are of one person."""

    async def verify_token(self, token: str) -> AccessToken | None:
        claims = {"iss": "https://auth.example.com"}
        return AccessToken(token="", client_id="c", scopes=json.loads(token), subject="alice", claims=claims)


def _headers(scopes: Sequence[str], revision: str, method: str, params: Mapping[str, Any]) -> dict[str, str]:
    found = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
        "Authorization": f"Bearer {json.dumps([*scopes, EVERYBODY])}",
    }
    if revision >= "2026":
        found["Mcp-Method"] = method
        if (named := params.get("name") or params.get("uri")) is not None:
            found["Mcp-Name"] = named
    return found


def _read(answer: httpx2.Response) -> dict[str, Any]:
    if "www-authenticate" in answer.headers:
        return {"status": answer.status_code, "header": answer.headers["www-authenticate"]}
    said = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    found: dict[str, Any] = json.loads(said[-1] if said else answer.text)
    return {key: found[key] for key in ("result", "error") if key in found}


@asynccontextmanager
async def _over_http(server: Any, revision: str, **options: Any) -> AsyncIterator[Ask]:
    """One session, up to 2025-11-25, whatever scopes each request comes with."""
    app = server.asgi_app(Handlers(), allowed_hosts=["here"], token_verifier=Verifier(), **options)
    more: dict[str, str] = {}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client,
    ):

        async def post(scopes: Sequence[str], message: dict[str, Any]) -> httpx2.Response:
            headers = _headers(scopes, revision, message["method"], message.get("params", {}))
            return await client.post("/mcp", json={"jsonrpc": "2.0", **message}, headers={**headers, **more})

        async def ask(scopes: Sequence[str], method: str, params: dict[str, Any]) -> dict[str, Any]:
            meta = {"_meta": ENVELOPE} if revision >= "2026" else {}
            return _read(await post(scopes, {"id": 1, "method": method, "params": {**params, **meta}}))

        if revision < "2026":
            hello = {**HELLO, "protocolVersion": revision}
            opened = await post((), {"id": 0, "method": "initialize", "params": hello})
            more["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
            await post((), {"method": "notifications/initialized"})
        yield ask


@asynccontextmanager
async def _locally(server: Any, revision: str) -> AsyncIterator[Ask]:
    """As the local user, who has the scopes that the server was started with."""

    @cache
    def build(*scopes: str) -> Any:
        return server.build_server(Handlers(), local_scopes=scopes)

    async def ask(scopes: Sequence[str], method: str, params: dict[str, Any]) -> dict[str, Any]:
        [answer] = await exchange(build(*scopes), revision, (method, params))
        return answer if "error" in answer else {"result": answer}

    yield ask


class Handlers:
    """Everybody who gets here is served."""

    async def none(self, args: Any, ctx: Any) -> str:
        return "served"

    one = two = none

    async def read_tpl_none(self, args: Any, ctx: Any) -> str:
        return "served"

    read_tpl_one = read_tpl_two = read_tpl_none


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vault")
    generate(folder, BASE)
    return folder


def _server(made: Path, folder: Path, **auth: Any) -> Iterator[Any]:
    """The package with another `auth`, which is not in its code."""
    shutil.copytree(made / "vault_mcp", folder / "vault_mcp")
    path = folder / "vault_mcp" / "manifest.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "auth": {**value["auth"], **auth}}))
    with imported(folder, "vault_mcp"):
        yield import_module("vault_mcp.server")


WAYS: Mapping[str, Any] = {
    f"{name} {revision}": (way, revision)
    for name, way in (("http", _over_http), ("local", _locally))
    for revision in ("2025-11-25", "2026-07-28")
}


def _matrix() -> Iterator[Any]:
    """Each hierarchy, way to refuse and way to ask.

    Those are not `long` where revisions and, for the local user, who sees no difference, ways to refuse take turns.
    """
    for (number, hierarchy), (missing, on_missing), way in product(
        enumerate(HIERARCHIES), enumerate(("hide", "challenge")), WAYS
    ):
        case = (hierarchy, on_missing, way)
        is_turn = way.endswith(("2025-11-25", "2026-07-28")[(number // 2 + missing) % 2])
        is_other = way.startswith("http") or missing == number % 2
        yield case if is_turn and is_other else amounts.mark_long(case)


@pytest.mark.parametrize(("hierarchy", "on_missing", "way"), amounts.sample([*_matrix()], 1))
async def test_the_matrix(hierarchy: str, on_missing: str, way: str, made: Path, tmp_path: Path) -> None:
    reach, revision = WAYS[way]
    over_http = way.startswith("http")
    for server in _server(made, tmp_path, scopes=HIERARCHIES[hierarchy], onMissing=on_missing):
        async with reach(server, revision) as ask:
            await _ask_for_everything(ask, revision, hierarchy, on_missing, over_http=over_http)


async def _ask_for_everything(ask: Ask, revision: str, hierarchy: str, on_missing: str, *, over_http: bool) -> None:
    absent = {json.dumps(asked): await ask((), *asked) for asked in _requests("nowhere", revision)}
    assert all("error" in answer for answer in absent.values())
    for held in HELD:
        expected = {name: _expected(name, held, hierarchy, on_missing, over_http=over_http) for name in NEEDED}
        for method, (key, form) in LISTS.items():
            wanted = [form.format(name) for name, (listed, _) in expected.items() if listed]
            assert await _listed(ask, held, method, key) == wanted, (held, method)
        for name, (_, wanted_answer) in expected.items():
            for asked, unknown in zip(_requests(name, revision), absent.values(), strict=True):
                answer = await ask(held, *asked)
                where = (held, name, asked, answer)
                if wanted_answer == "served":
                    assert "result" in answer, where
                    assert not answer["result"].get("isError"), where
                elif wanted_answer == "403":
                    scopes = " ".join((EVERYBODY, *NEEDED[name]))
                    assert answer == {"status": 403, "header": _challenge(scopes)}, where
                else:
                    assert answer == json.loads(json.dumps(unknown).replace("nowhere", name)), where


def _challenge(scopes: str) -> str:
    return (
        f'Bearer error="insufficient_scope", error_description="This request needs the scopes {scopes}", '
        f'scope="{scopes}", resource_metadata="{METADATA}"'
    )


async def _listed(ask: Ask, held: Sequence[str], method: str, key: str) -> list[str]:
    """Return the names in a list, from all of its pages; no page has more than two."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        answer = await ask(held, method, {} if cursor is None else {"cursor": cursor})
        result = answer["result"]
        assert len(result[key]) <= 2
        names += [one["name"] for one in result[key]]
        if (cursor := result.get("nextCursor")) is None:
            return names


@pytest.mark.parametrize("way", amounts.sample(WAYS, 2))
async def test_a_cursor_is_of_the_list_that_its_caller_sees(made: Path, tmp_path: Path, way: str) -> None:
    reach, revision = WAYS[way]
    for module in _server(made, tmp_path):
        async with reach(module, revision) as ask:
            for method in LISTS:
                cursor = (await ask(("read", "write"), method, {}))["result"]["nextCursor"]
                assert "result" in await ask(("write", "read", "other"), method, {"cursor": cursor})
                for held in ((), ("read",)):
                    answer = await ask(held, method, {"cursor": cursor})
                    assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, "Invalid cursor")
                assert "nextCursor" not in (await ask(("read",), method, {}))["result"]


async def test_a_session_is_one_person_s(made: Path, tmp_path: Path) -> None:
    """Up to 2025-11-25; with another token of the same person it goes on, with what that one allows."""
    for module in _server(made, tmp_path):
        async with _over_http(module, "2025-11-25") as ask:
            asked = ("tools/call", {"name": "one", "arguments": {}})
            said = [await ask(held, *asked) for held in ((), ("read",), (), ("read",))]
            assert ["result" in answer for answer in said] == [False, True, False, True]


@pytest.mark.parametrize("uri", ["res://one", "tpl://one/1"])
async def test_a_hidden_resource_is_not_heard_of(uri: str, made: Path, tmp_path: Path) -> None:
    """`subscriptions/listen` of 2026-07-28 acknowledges hidden resources, as it does unknown ones."""
    wanted = {"resourceSubscriptions": [uri, "res://none"]}
    for module in _server(made, tmp_path):
        for held, heard in (((), ["res://none"]), (("read",), wanted["resourceSubscriptions"])):
            built = module.build_server(Handlers(), local_scopes=held)
            async with opened(built) as (send, receive):
                params = {"notifications": wanted, "_meta": ENVELOPE}
                await send({"id": 1, "method": "subscriptions/listen", "params": params})
                assert (await receive())["params"]["notifications"] == wanted
                for each in wanted["resourceSubscriptions"]:
                    await built.resources.updated(each)
                assert [(await receive())["params"]["uri"] for _ in heard] == heard


async def test_listening_to_a_resource_asks_for_its_scopes(made: Path, tmp_path: Path) -> None:
    for module in _server(made, tmp_path, onMissing="challenge"):
        async with _over_http(module, "2026-07-28") as ask:
            uris = ["res://one", "tpl://two/1", "res://none"]
            answer = await ask((), "subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
            assert answer == {"status": 403, "header": _challenge("mcp read write")}


async def test_headers_tell_nobody_of_a_hidden_tool(tmp_path: Path) -> None:
    """A wrong header of a call is a separate error only if the caller can see the tool."""
    schema = {"place": {"type": "string", "x-mcp-header": "Place"}}
    policy = {"policy": {"scopes": ["read"]}}
    value = manifest([tool("none", stubwright=policy), tool("one", schema, stubwright=policy)], name="vault")
    with imported(tmp_path, generate(tmp_path, value)):
        app = import_module("vault_mcp.server").asgi_app(Handlers(), allowed_hosts=["here"], token_verifier=Verifier())
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client,
        ):
            said: dict[tuple[str, ...], list[dict[str, Any]]] = {}
            for held in ((), ("read",)):
                for name in ("one", "nowhere"):
                    params = {"name": name, "arguments": {"place": "a"}, "_meta": ENVELOPE}
                    headers = {**_headers(held, "2026-07-28", "tools/call", params), "Mcp-Param-Place": "b"}
                    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                    answer = _read(await client.post("/mcp", json=message, headers=headers))
                    said.setdefault(held, []).append(answer["error"])
    assert said[()][0] == json.loads(json.dumps(said[()][1]).replace("nowhere", "one"))
    assert said[("read",)][0]["code"] != said[("read",)][1]["code"]


async def test_over_a_network_and_by_the_typed_client(made: Path, tmp_path: Path) -> None:
    """The same through a port, with the official client."""
    for module in _server(made, tmp_path):
        app = module.asgi_app(Handlers(), token_verifier=Verifier())
        with asgi(app) as url:
            for held, wanted in (((), ["none"]), (("read",), ["none", "one"])):
                headers = {"Authorization": f"Bearer {json.dumps([*held, EVERYBODY])}"}
                client = import_module("vault_mcp").VaultClient
                async with client.connect(f"{url}/mcp", headers=headers) as connected:
                    listed = await connected.raw.list_tools()
                    assert [one.name for one in listed.tools] == wanted
                    if held:
                        [block] = await connected.one()
                        assert block.text == "served"
                    else:
                        with pytest.raises(mcp.MCPError, match="Unknown tool"):
                            await connected.one()


@pytest.mark.parametrize(
    ("granted", "told"),
    amounts.sample(
        [([], "--scope admin --scope read"), (["--scope", "admin"], None), (["--scope", "read"], "add --scope admin")],
        2,
    ),
)
def test_the_local_user_is_told_what_is_not_there(granted: list[str], told: str | None, tmp_path: Path) -> None:
    tools = [tool(f"to_{scope}", stubwright={"policy": {"scopes": [scope]}}) for scope in ("read", "admin")]
    auth = {"issuer": "https://auth.example.com", "audience": "https://x.example.com", "scopes": {"admin": ["read"]}}
    name = generate(tmp_path, manifest(tools, name="local", auth=auth))
    (tmp_path / "mine.py").write_text("class Mine:\n    def to_read(self, args, ctx): ...\n    to_admin = to_read\n")
    command = [*forked.interpreter(), "-m", name, "--handlers", "mine:Mine", *granted]
    done = subprocess.run(command, cwd=tmp_path, input="", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert ("entries that require scopes are hidden from the local user" in done.stderr) == (told is not None)
    assert (told or "") in done.stderr
