"""Arguments that the server sets from the caller's access token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp
import pytest
from mcp.server.auth.provider import AccessToken

from memory import load
from packages import check, generate, imported, manifest, tool
from serving import asgi
from stubwright import cli
from stubwright.compile.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PROPERTIES = {"user_id": {"type": "string"}, "age": {"type": "integer", "minimum": 18}, "text": {"type": "string"}}
BIND = {
    "user_id": {"claim": "sub", "local": {"env": "BINDS_USER"}},
    "age": {"claim": "age", "local": {"env": "BINDS_AGE"}},
}
TOOL = tool("add_note", PROPERTIES, stubwright={"bind": BIND})
TOOL["inputSchema"]["required"] = ["user_id", "text"]

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


class Handlers:
    """Say what they were given."""

    def add_note(self, args: Any, ctx: object) -> str:
        return f"{args.user_id} {args.age + 0} {args.text}"


class Verifier:
    """Takes tokens that are a subject and an age."""

    async def verify_token(self, token: str) -> AccessToken:
        claims: dict[str, Any] = {"iss": "https://auth.example.com"}
        subject, _, age = token.partition("-")
        if age:
            claims["age"] = int(age) if age.isdecimal() else age
        return AccessToken(token="", client_id="c", scopes=[], subject=subject, claims={"sub": subject, **claims})


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("binds")
    with imported(folder, generate(folder, manifest([TOOL], name="binds"))) as module:
        yield module


async def called(client: mcp.Client, arguments: dict[str, Any]) -> str:
    result = await client.call_tool("add_note", arguments)
    [block] = result.content
    assert block.type == "text"
    return f"{'error: ' if result.is_error else ''}{block.text}"


@ERAS
async def test_the_local_user_s_come_from_the_environment(
    mode: Any, package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mcp.Client(package.build_server(Handlers()), mode=mode) as client:
        [listed] = (await client.list_tools()).tools
        assert listed.input_schema == {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }
        needs = "error: add_note needs the environment variable BINDS_USER of the server."
        assert await called(client, {"text": "a"}) == needs
        monkeypatch.setenv("BINDS_USER", "17")
        monkeypatch.setenv("BINDS_AGE", "17")
        text = await called(client, {"text": "a"})
        assert text == (
            "error: add_note cannot use the environment variable BINDS_AGE of the server: it does not match the schema."
        )
        monkeypatch.setenv("BINDS_AGE", "18")
        assert await called(client, {"text": "a"}) == "17 18 a"
        assert await called(client, {"text": "a", "user_id": "ann"}) == (
            "error: Invalid arguments for add_note:\n- user_id: is set by the server; omit it"
        )


@ERAS
@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("ann-20", "ann 20 a"),
        ("ann", "error: add_note needs the claim 'age' of your access token."),
        ("ann-old", "error: add_note cannot use the claim 'age' of your access token: it does not match the schema."),
        ("ann-17", "error: add_note cannot use the claim 'age' of your access token: it does not match the schema."),
        (None, "error: add_note needs an access token with the claim 'sub'."),
    ],
)
async def test_others_come_from_the_token(
    mode: Any, token: str | None, text: str, package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINDS_USER", "root")  # which has no value over HTTP
    monkeypatch.setenv("BINDS_AGE", "99")
    app = package.asgi_app(Handlers(), token_verifier=None if token is None else Verifier())
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    with asgi(app) as url:
        async with (
            httpx2.AsyncClient(headers=headers) as web,
            mcp.Client(streamable_http_client(f"{url}/mcp", http_client=web), mode=mode) as client,
        ):
            assert await called(client, {"text": "a"}) == text


async def test_the_typed_client_and_the_models(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINDS_USER", "ann")
    monkeypatch.setenv("BINDS_AGE", "20")
    assert package.AddNoteInput(user_id="ann", text="a").user_id == "ann"
    async with package.BindsClient.connect(package.build_server(Handlers())) as client:
        [block] = await client.add_note(text="a")
        assert block.text == "ann 20 a"
        with pytest.raises(TypeError, match="user_id"):
            await client.add_note(text="a", user_id="ann")


@pytest.mark.parametrize(
    ("schema", "bind", "code"),
    [
        ({"type": "object", "properties": {"a": True}}, {"b": {"claim": "sub"}}, "SW258"),
        (
            {"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": True}}}},
            {"a": {"claim": "s"}},
            "SW258",
        ),
        ({"type": "object", "properties": {"a": True}, "anyOf": [{"required": ["a"]}]}, {"a": {"claim": "s"}}, "SW269"),
        ({"type": "object", "properties": {"a": True}, "dependencies": {"a": ["b"]}}, {"a": {"claim": "s"}}, "SW269"),
        ({"type": "object", "properties": {"a": True}}, {"a": {"local": {"env": "A"}}}, "SW269"),
        ({"type": "object", "properties": {"a": True}}, {"a": {"claim": "s", "local": {"env": "A B"}}}, "SW105"),
    ],
)
def test_what_cannot_be_bound(schema: dict[str, Any], bind: dict[str, Any], code: str, tmp_path: Path) -> None:
    given = {"name": "t", "description": "d", "inputSchema": schema, "stubwright": {"bind": bind}}
    assert code in [found.code for found in check(tmp_path, manifest([given]))]


AUTH = {"issuer": "https://auth.example.com", "audience": "https://binds.example.com/mcp"}
SUBJECT = {"claim": "sub", "local": {"env": "BINDS_USER"}}
TOOLS = [
    tool("add_note", {"user_id": {"type": "string"}, "text": {"type": "string"}}),
    tool("count_notes", {"user_id": {"type": "string", "minLength": 2}}),
    tool("list_topics", {"topic": {"type": "string"}}),
]
BY_TOKEN = {
    **manifest(TOOLS, name="bound_by_auth"),
    "auth": {**AUTH, "bind": {"user_id": SUBJECT}},
    "policy": {"rateLimit": "60/minute"},
}


def bind_in_each(value: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest whose tools say themselves what its `auth` binds."""
    auth = dict(value["auth"])
    bindings = auth.pop("bind")
    tools = []
    for each in value["tools"]:
        own = {name: binding for name, binding in bindings.items() if name in each["inputSchema"]["properties"]}
        tools.append({**each, "stubwright": {"bind": own}} if own else each)
    return {**value, "auth": auth, "tools": tools}


def test_what_auth_binds_is_the_same_as_in_each_tool(tmp_path: Path) -> None:
    packages: list[dict[str, bytes]] = []
    for folder, value in ((tmp_path / "all", BY_TOKEN), (tmp_path / "each", bind_in_each(BY_TOKEN))):
        folder.mkdir()
        name = generate(folder, value)
        files = [path for path in (folder / name).rglob("*") if path.is_file()]
        packages.append({str(path.relative_to(folder)): path.read_bytes() for path in files})
    assert len(packages[0]) > 5
    assert packages[0] == packages[1]


def test_it_reaches_included_tools_overlays_and_apis() -> None:
    overlaid = """
        stubwright: 1
        server: {name: outer, version: "1"}
        auth:
          issuer: https://auth.example.com
          audience: https://outer.example.com
          bind: {user_id: {claim: sub}, tenant: {claim: org}, region: {claim: region}}
        include: [{path: inner.yaml, prefix: in_}, saved.json]
        tools: []
        overlay:
          apis: {books: {bind: {tenant: {value: main}}}}
          tools:
            in_add: {inputSchema: {properties: {user_id: {type: string}}}}
            in_own: {bind: {tenant: {env: TENANT}, region: null}}
    """
    inner = """
        stubwright: 1
        apis: {books: {baseUrl: "https://books.example.com"}}
        tools:
          - {name: add, description: D., inputSchema: {type: object, properties: {text: {type: string}}}}
          - name: of_api
            description: D.
            inputSchema: {type: object, properties: {user_id: {type: string}, tenant: {type: string}}}
            stubwright:
              http: {api: books, url: "/{tenant}/{user_id}"}
              examples: [{input: {user_id: a, tenant: b}}]
          - name: own
            description: D.
            inputSchema: {type: object, properties: {tenant: {type: string}, region: {type: string}}}
    """
    saved = '{"tools": [{"name": "saved", "inputSchema": {"type": "object", "properties": {"region": {}}}}]}'
    resolved = resolve(load("outer.yaml", **{"outer.yaml": overlaid, "inner.yaml": inner, "saved.json": saved}))
    bound = {each.name: each.extension.get("bind") for each in resolved.tools}
    assert bound == {
        "in_add": {"user_id": {"claim": "sub"}},
        "in_of_api": {"user_id": {"claim": "sub"}, "tenant": {"value": "main"}},
        "in_own": {"tenant": {"env": "TENANT"}},
        "saved": {"region": {"claim": "region"}},
    }
    assert [each.unbound for each in resolved.tools] == [(), (), ("region",), ()]
    assert resolved.tools[1].extension["examples"] == [{"input": {}}]


@ERAS
async def test_what_auth_binds_comes_from_the_token(mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Notes:
        def add_note(self, args: Any, ctx: object) -> str:
            return f"{args.user_id}: {args.text}"

        def count_notes(self, args: Any, ctx: object) -> str:
            return f"{args.user_id}"

        def list_topics(self, args: Any, ctx: object) -> str:
            return ""

    monkeypatch.setenv("BINDS_USER", "root")  # which has no value over HTTP
    with imported(tmp_path, generate(tmp_path, BY_TOKEN)) as module:
        app = module.asgi_app(Notes(), token_verifier=Verifier())
        with asgi(app) as url:
            async with (
                httpx2.AsyncClient(headers={"Authorization": "Bearer ann"}) as web,
                mcp.Client(streamable_http_client(f"{url}/mcp", http_client=web), mode=mode) as client,
            ):
                listed = [each.input_schema["properties"] for each in (await client.list_tools()).tools]
                assert listed == [{"text": {"type": "string"}}, {}, {"topic": {"type": "string"}}]
                assert await called(client, {"text": "a"}) == "ann: a"
                assert await called(client, {"text": "a", "user_id": "bob"}) == (
                    "error: Invalid arguments for add_note:\n- user_id: is set by the server; omit it"
                )


def test_diff_compares_each_tool_and_keeps_no_count_of_where_it_is_said(tmp_path: Path) -> None:
    assert cli.run(["diff", *written(tmp_path, BY_TOKEN, bind_in_each(BY_TOKEN))]) == 0


def test_what_auth_no_longer_binds_is_a_change_of_each_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = {**BY_TOKEN, "tools": [{**TOOLS[0], "stubwright": {"bind": {"user_id": None}}}, *TOOLS[1:]]}
    cli.run(["diff", *written(tmp_path, BY_TOKEN, opened)])
    text = capsys.readouterr().out
    assert "tool `add_note`: `user_id` is no longer set by the server" in text
    assert "auth.bind" not in text
    assert "count_notes" not in text


def written(folder: Path, *values: dict[str, Any]) -> list[str]:
    """Write manifests, and return their paths."""
    paths = [folder / f"{number}.json" for number in range(len(values))]
    for path, value in zip(paths, values, strict=True):
        path.write_text(json.dumps(value))
    return [str(path) for path in paths]
