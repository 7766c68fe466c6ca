"""The manifest, handlers and commands of `docs/protecting.md`, taken from the page, with their output."""

from __future__ import annotations

import argparse
import hmac
import json
import re
import shlex
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import anyio
import httpx2
import jwt
import mcp
import pytest
import yaml
from conftest import ROOT
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm
from mcp.client.streamable_http import streamable_http_client

import forked
import walkthrough
from command_line import stubwright
from fake_api import Answer, Asked, FakeApi, api
from packages import generate, imported, manifest, tool
from processes import start_process
from serving import asgi

if TYPE_CHECKING:
    from types import ModuleType

PAGE = (ROOT / "docs" / "protecting.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REALM = "/realms/shop"
HERE = "https://notes.example.com/mcp"
ACCEPT = {"accept": "application/json, text/event-stream"}

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def block(start: str) -> str:
    """The block of the page that starts so."""
    found: list[str] = [text for _, text in BLOCKS if text.startswith(start)]
    assert len(found) == 1
    return found[0]


# The authorization server


KEY = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)


def token(issuer: FakeApi, scope: str, key: Any = KEY, algorithm: str = "RS256", **more: Any) -> str:
    """A token as Keycloak makes them."""
    now = int(time.time())
    said = {"iss": issuer.url + REALM, "aud": [HERE, "account"], "sub": "8f0a6c1e-reporter", "azp": "reporter"}
    times = {"iat": now, "exp": now + 300, "typ": "Bearer"}
    return jwt.encode({**said, **times, "scope": f"profile {scope}", **more}, key, algorithm, {"kid": "1"})


@pytest.fixture(scope="module")
def issuer() -> Iterator[FakeApi]:
    """An authorization server with the paths of Keycloak's."""

    def answer(asked: Asked) -> Answer:
        match asked.path:
            case "/realms/shop/.well-known/openid-configuration":
                return {"issuer": fake.url + REALM, "jwks_uri": f"{fake.url}{REALM}/protocol/openid-connect/certs"}
            case "/realms/shop/protocol/openid-connect/certs":
                public = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))
                return {"keys": [{**public, "kid": "1", "use": "sig", "alg": "RS256"}]}
            case "/realms/shop/protocol/openid-connect/token":
                form = {name: value for name, [value] in parse_qs(asked.body.decode()).items()}
                if form.get("grant_type") != "client_credentials" or form.get("client_secret") != "kept":
                    return 401, {"error": "invalid_client"}
                return {"access_token": token(fake, form["scope"]), "token_type": "Bearer", "expires_in": 300}
            case _:
                return 404, {}

    with api(answer) as fake:
        yield fake


# The server


def write(folder: Path, issuer: FakeApi, *, challenges: bool = False) -> Path:
    """The files of the page, and the package that they give."""
    text = block("# specs/notes.yaml").replace("https://auth.example.com", issuer.url)
    if challenges:
        text = text.replace("auth:\n", "auth:\n  onMissing: challenge\n", 1)
    (folder / "specs").mkdir()
    (folder / "specs" / "notes.yaml").write_text(text)
    for name in ("notebook.py", "report.py"):
        (folder / name).write_text(block(f"# {name}"))
    [command] = commands(block("$ stubwright generate"))
    done = stubwright(*command[0][1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return folder


def commands(text: str) -> list[tuple[list[str], list[str]]]:
    """Return the commands of a block, each with its output lines."""
    return [(shlex.split(command), printed.splitlines()) for command, printed in walkthrough.commands(text)]


@pytest.fixture(scope="module")
def folder(issuer: FakeApi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("hide"), issuer)


@pytest.fixture(scope="module")
def challenging(issuer: FakeApi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("challenge"), issuer, challenges=True)


@contextmanager
def package(folder: Path) -> Iterator[tuple[ModuleType, Any]]:
    """The package, and handlers as the page has them."""
    made: dict[str, Any] = {}
    with imported(folder / "generated", "notes_mcp") as module:
        exec((folder / "notebook.py").read_text(), made)
        yield module, made["Notebook"]()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with package(folder) as (module, handlers), asgi(module.asgi_app(handlers)) as url:
        yield url


@asynccontextmanager
async def client(url: str, given: str, mode: Any) -> AsyncIterator[mcp.Client]:
    headers = {"Authorization": f"Bearer {given}"}
    async with (
        httpx2.AsyncClient(headers=headers) as web,
        mcp.Client(streamable_http_client(f"{url}/mcp", http_client=web), mode=mode) as made,
    ):
        yield made


async def names(made: mcp.Client) -> list[str]:
    return [one.name for one in (await made.list_tools()).tools]


def curl(arguments: Sequence[str], folder: Path) -> str:
    """Return `curl`'s output without its spaces, with the features that the page uses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d", action="append", default=[])
    parser.add_argument("-o")
    parser.add_argument("url")
    given = parser.parse_args(arguments)
    headers = {name: value.strip() for name, _, value in (each.partition(":") for each in given.H)}
    if given.d:
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
    method = "POST" if given.d else "GET"
    answer = httpx2.request(method, given.url, headers=headers, content="&".join(given.d).encode())
    if given.o:
        (folder / given.o).write_bytes(answer.content)
        return ""
    head = [
        f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}",
        *(": ".join(one) for one in answer.headers.items()),
    ]
    return "\n".join([*(head if given.i else []), answer.text])


def do(text: str, folder: Path, places: Mapping[str, str], **values: str) -> None:
    """Run the commands of a block with other paths and values of variables, and check their output."""
    for (name, *arguments), said in commands(text):
        given = [re.sub(r"\$(\w+)", lambda found: values[found[1]], each) for each in arguments]
        for old, new in places.items():
            given = [each.replace(old, new) for each in given]
            said = [each.replace(old, new) for each in said]
        if name == "curl":
            printed = curl(given, folder)
        else:
            assert name == "python"
            for old, new in places.items():
                program = folder / given[0]
                program.write_text(program.read_text().replace(old, new))
            done = forked.python(given, folder, [folder / "generated"])
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        for line in said:
            assert line in printed, f"{name}: no {line!r} in:\n{printed}"


def test_the_server_of_the_page(folder: Path, challenging: Path, issuer: FakeApi) -> None:
    [line] = re.findall(r"^`python (-m notes_mcp --http \S+ --allow-host [^`]+)`", PAGE, re.MULTILINE)
    [audit] = re.findall(r"With `(--audit [^`]+)`", PAGE)
    arguments = shlex.split(f"{line} {audit}".replace("127.0.0.1:8000", "127.0.0.1:0"))
    environment = {"PYTHONPATH": f"{folder / 'generated'}:{folder}"}
    command = [*forked.interpreter(), *arguments]
    with start_process(command, cwd=folder, env=environment, stderr=-1, text=True) as process:
        assert process.stderr is not None
        log = ""
        while "startup complete" not in log:
            log += (read := process.stderr.readline())
            assert read, log
        [url] = re.findall(r"serving (http://127\.0\.0\.1:\d+)/mcp", log)
        places = {"http://127.0.0.1:8000": url, "https://auth.example.com": issuer.url}
        done = [text for kind, text in BLOCKS if kind == "console"]
        _, unknown, first, challenge, second, _ = done
        do(unknown, folder, places)
        do(first, folder, places)
        access = json.loads((folder / "token.json").read_text())["access_token"]
        answer = httpx2.post(f"{url}/mcp", headers={"Authorization": f"Bearer {access}"}, json=[])
        assert answer.status_code == 400  # it got in
        with served(challenging) as other:
            do(challenge, folder, {**places, "http://127.0.0.1:8000": other}, TOKEN=access)
        do(second, folder, places)
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    records = [json.loads(each) for each in (folder / arguments[-1]).read_text().splitlines()]
    assert [(each["outcome"], each["tool"], each["subject"], each["keys"]) for each in records] == [
        ("denied", None, None, []),
        ("completed", "add_note", "8f0a6c1e-reporter", ["text"]),
        ("completed", "list_notes", "8f0a6c1e-reporter", []),
    ]
    assert "Milk" not in (folder / arguments[-1]).read_text()
    assert [asked.path for asked in issuer.asked].count("/realms/shop/protocol/openid-connect/token") == 2
    assert {"authorization"} & {name for asked in issuer.asked for name in asked.headers} == set()


def test_blocks_that_are_run_are_all_there_are() -> None:
    assert [kind for kind, _ in BLOCKS] == [
        "yaml", "python", "console", "console", "console", "console", "python", "console", "console",
    ]  # fmt: skip


# Tokens


BAD: dict[str, Mapping[str, Any]] = {
    "another audience": {"aud": "https://other.example.com/mcp"},
    "another issuer": {"iss": "https://auth.example.com/realms/other"},
    "expired": {"exp": int(time.time()) - 60},
    "not yet valid": {"nbf": int(time.time()) + 3600},
    "another key": {"key": OTHER},
    "no signature": {"key": None, "algorithm": "none"},
}


def with_hmac(given: str) -> str:
    """Return a token that is signed with the public key, which is not secret."""
    head, said, _ = given.split(".")
    head = jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"1"}').decode()
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signature = hmac.digest(public, f"{head}.{said}".encode(), "sha256")
    return f"{head}.{said}.{jwt.utils.base64url_encode(signature).decode()}"


def test_a_token_for_another_is_refused(folder: Path, issuer: FakeApi) -> None:
    with served(folder) as url:
        bad = {name: token(issuer, "notes:read", **more) for name, more in BAD.items()}
        for name, each in {**bad, "the public key as a password": with_hmac(token(issuer, "notes:read"))}.items():
            headers = {"Authorization": f"Bearer {each}"}
            answer = httpx2.post(f"{url}/mcp", headers=headers, json={})
            assert answer.status_code == 401, name
            assert (
                'error="invalid_token", error_description="The access token is not valid here"'
                in (answer.headers["www-authenticate"])
            ), name
        answer = httpx2.post(f"{url}/mcp?access_token={token(issuer, 'notes:read')}", json={})
        assert answer.status_code == 401
        headers = {"Authorization": f"Bearer {token(issuer, 'notes:other')}"}
        answer = httpx2.post(f"{url}/mcp", headers=headers, json={})
        assert answer.status_code == 403
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
        assert 'scope="notes:read"' in answer.headers["www-authenticate"]


# Scopes


HELD = {
    "notes:read": ["list_notes"],
    "notes:write": ["list_notes", "add_note"],
    "notes:admin": ["list_notes", "add_note", "delete_all"],
    "notes:read notes:admin": ["list_notes", "add_note", "delete_all"],
}


@pytest.mark.anyio
@ERAS
async def test_a_list_has_what_the_token_permits(folder: Path, issuer: FakeApi, mode: Any) -> None:
    with served(folder) as url:
        for scope, expected in HELD.items():
            async with client(url, token(issuer, scope), mode) as made:
                assert await names(made) == expected
                for name in {"add_note", "delete_all"} - {*expected}:
                    with pytest.raises(mcp.MCPError, match=f"Unknown tool: {name}"):
                        await made.call_tool(name, {"text": "a"})


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def sent(
    web: httpx2.Client, access: str, method: str, session: Mapping[str, str], params: Any = None
) -> httpx2.Response:
    """The answer to a request of 2025-11-25, or to a notification."""
    message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    if not method.startswith("notifications/"):
        message["id"] = 1
    headers = {**ACCEPT, "Authorization": f"Bearer {access}", "mcp-protocol-version": "2025-11-25", **session}
    return web.post("/mcp", json=message, headers=headers)


def begin(web: httpx2.Client, access: str) -> Mapping[str, str]:
    """The header of a new session."""
    session = {"mcp-session-id": sent(web, access, "initialize", {}, HELLO).headers["mcp-session-id"]}
    sent(web, access, "notifications/initialized", session)
    return session


def test_a_list_depends_on_the_request_and_not_on_the_session(folder: Path, issuer: FakeApi) -> None:
    with served(folder) as url, httpx2.Client(base_url=url) as web:
        session = begin(web, token(issuer, "notes:admin"))
        for scope in ("notes:admin", "notes:read", "notes:admin"):
            text = sent(web, token(issuer, scope), "tools/list", session).text
            assert re.findall(r'"name": ?"(\w+)"', text) == HELD[scope]


def test_a_session_is_no_authentication(folder: Path, issuer: FakeApi) -> None:
    with served(folder) as url, httpx2.Client(base_url=url) as web:
        session = begin(web, token(issuer, "notes:admin"))
        assert sent(web, "none", "tools/list", session).status_code == 401
        assert sent(web, token(issuer, "notes:read", aud="other"), "tools/list", session).status_code == 401
        for more in ({"sub": "somebody"}, {"azp": "another"}):
            assert sent(web, token(issuer, "notes:admin", **more), "tools/list", session).status_code == 404, more
        assert sent(web, token(issuer, "notes:admin"), "tools/list", session).status_code == 200


@pytest.mark.anyio
@ERAS
async def test_challenge_asks_for_all_scopes(challenging: Path, issuer: FakeApi, mode: Any) -> None:
    with served(challenging) as url:
        async with client(url, token(issuer, "notes:read"), mode) as made:
            assert await names(made) == HELD["notes:admin"]
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "delete_all"}}
        headers = {"Authorization": f"Bearer {token(issuer, 'notes:write')}"}
        answer = httpx2.post(f"{url}/mcp", json=call, headers=headers)
        assert answer.status_code == 403
        assert 'scope="notes:read notes:admin"' in answer.headers["www-authenticate"]


# On this machine


@pytest.mark.anyio
@ERAS
async def test_the_local_user_has_the_scopes_of_the_command_line(folder: Path, mode: Any) -> None:
    [([variable, program, *arguments], _)] = commands(block("$ NOTES_OWNER"))
    assert program == "python"
    name, _, owner = variable.partition("=")
    environment = {"PYTHONPATH": f"{folder / 'generated'}:{folder}", name: owner}
    interpreter = forked.interpreter()
    target = mcp.StdioServerParameters(
        command=interpreter[0], args=[*interpreter[1:], *arguments], env=environment, cwd=folder
    )
    async with mcp.Client(mcp.stdio_client(target), mode=mode) as made:
        assert await names(made) == HELD["notes:write"]
        [said] = (await made.call_tool("add_note", {"text": "a"})).content
        assert said.type == "text"
        assert said.text == f"Kept for {owner}, who has the scopes notes:read notes:write."
        refused = await made.call_tool("list_notes", {"owner": "bob"})
        assert refused.is_error


# Limits


LIMITS = re.findall(r"^\| `(\w+: \w+(?:/\w+)?)` \| (slow .*|The .*) \|$", PAGE, re.MULTILINE)
REFUSED = {"rateLimit": 1, "concurrency": 2}
"""How many of three calls are refused, where it is not all of them."""


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A package with a tool for each limit."""
    folder = tmp_path_factory.mktemp("limits")
    properties = {"text": {"type": "string"}}
    tools = [
        tool(f"slow_{number}", properties, stubwright={"policy": yaml.safe_load(limit)})
        for number, (limit, _) in enumerate(LIMITS)
    ]
    with imported(folder, generate(folder, manifest(tools, name="limits"))) as module:
        yield module


async def slow(args: Any, ctx: Any) -> str:
    await anyio.sleep(0.3)
    return str(args.text)


@pytest.mark.anyio
@ERAS
@pytest.mark.parametrize("number", range(len(LIMITS)), ids=[limit for limit, _ in LIMITS])
async def test_limits_are_told(limited: ModuleType, mode: Any, number: int) -> None:
    limit, words = LIMITS[number]
    name = f"slow_{number}"
    handlers = SimpleNamespace(**dict.fromkeys(limited.TOOLS, slow))
    texts: list[str] = []
    async with mcp.Client(limited.build_server(handlers), mode=mode) as made:

        async def call() -> None:
            result = await made.call_tool(name, {"text": "x" * 100})
            [said] = result.content
            assert said.type == "text"
            if result.is_error:
                texts.append(said.text)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call)
    assert len(texts) == REFUSED.get(limit.partition(":")[0], 3)
    pattern = re.escape(words.replace("slow", name)).replace("…", r"[\d,]+")
    assert [text for text in texts if re.fullmatch(pattern, text) is None] == []


def test_all_limits_are_on_the_page() -> None:
    assert [limit.partition(":")[0] for limit, _ in LIMITS] == [
        "rateLimit", "concurrency", "timeout", "maxArgumentBytes", "maxResultBytes",
    ]  # fmt: skip
