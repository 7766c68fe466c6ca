"""Arguments that the server sets from the caller's access token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp
import pytest
from mcp.server.auth.provider import AccessToken

from packages import check, generate, imported, manifest, tool
from serving import asgi

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
            "error: add_note cannot take the environment variable BINDS_AGE of the server: it is of another form."
        )
        monkeypatch.setenv("BINDS_AGE", "18")
        assert await called(client, {"text": "a"}) == "17 18 a"
        assert await called(client, {"text": "a", "user_id": "ann"}) == (
            "error: Invalid arguments for add_note:\n- user_id: is set by the server; leave it out"
        )


@ERAS
@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("ann-20", "ann 20 a"),
        ("ann", "error: add_note needs the claim 'age' of your access token."),
        ("ann-old", "error: add_note cannot take the claim 'age' of your access token: it is of another form."),
        ("ann-17", "error: add_note cannot take the claim 'age' of your access token: it is of another form."),
        (None, "error: add_note needs an access token with the claim 'sub'."),
    ],
)
async def test_others_come_from_the_token(
    mode: Any, token: str | None, text: str, package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINDS_USER", "root")  # which is nobody's over HTTP
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
