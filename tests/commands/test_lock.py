"""`stubwright lock`: contracts of all kinds of servers, their contents, their exclusions, and errors."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

import forked
from command_line import forking, stubwright
from serving import asgi
from stubwright import paths
from stubwright.commands.contracts import files
from stubwright.compile.syntax import yamlwriter
from stubwright.importers import tools
from stubwright.importers.contracts import contract, secrets
from stubwright.importers.contracts.locations import KEY, Location
from stubwright.importers.document_reader import DocumentError
from stubwright.project.files.disk import Disk

ROOT: Final = Path(__file__).parents[2]
TOKEN: Final = "top-5ecret-t0ken"

SERVER: Final = """\
import json, os, sys
tools = json.loads(os.environ.get("TOOLS") or '[{"name": "b", "inputSchema": {"type": "object"}}]')
results = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": os.environ.get("NAME") or "Desk: Ünï/1", "version": "1.2"}},
    "tools/list": {"tools": tools},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        known = message["method"] in results
        answer = {"result": results[message["method"]]} if known else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    return tmp_path


def lock_with_tools(folder: Path, tools: Any, *options: str) -> str:
    """Return the contract of a server that lists these tools."""
    environment = ["--env", f"TOOLS={json.dumps(tools)}", "--env", "NAME=desk"]
    done = stubwright("lock", "-o", "-", *options, *environment, "--", sys.executable, "server.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_command_is_locked_twice_with_the_same_bytes(folder: Path) -> None:
    command = ["lock", "--", sys.executable, "server.py"]
    first = stubwright(*command, cwd=folder)
    assert (first.returncode, first.stdout) == (0, "contracts/desk-n-1.yaml: locked\n"), first.stderr
    before = (folder / "contracts" / "desk-n-1.yaml").read_bytes()
    second = stubwright(*command, cwd=folder)
    assert (second.returncode, second.stdout) == (0, "contracts/desk-n-1.yaml: up to date\n")
    assert (folder / "contracts" / "desk-n-1.yaml").read_bytes() == before
    assert [path.name for path in (folder / "contracts").iterdir()] == ["desk-n-1.yaml"]
    assert yaml.safe_load(before)[KEY] == {"command": [sys.executable, "server.py"]}


def test_tools_and_keys_are_sorted_and_schemas_and_words_are_verbatim(folder: Path) -> None:
    schema = {"type": "object", "required": ["z", "a"], "properties": {"z": {"x-odd": [1]}, "a": {"type": "string"}}}
    tools: list[dict[str, Any]] = [
        {"zeta": 1, "inputSchema": schema, "description": "Two  spaces\nand “quotes” — é.\n", "alpha": 2, "name": "b"},
        {"name": "A", "inputSchema": {"type": "object"}},
        {"name": "a", "inputSchema": {"type": "object"}},
    ]
    text = lock_with_tools(folder, tools)
    locked = yaml.safe_load(text)
    assert list(locked) == ["stubwright", KEY, "server", "emit", "client", "tools"]
    assert [tool["name"] for tool in locked["tools"]] == ["A", "a", "b"]
    assert [*locked["tools"][2]] == ["name", "description", "inputSchema", "alpha", "zeta"]
    assert json.dumps(locked["tools"][2]["inputSchema"]) == json.dumps(schema)
    assert locked["tools"][2]["description"] == tools[0]["description"]
    reordered = [{**tool} for tool in reversed(tools)]
    reordered[-1] = dict(sorted(tools[0].items()))
    assert yaml.safe_load(lock_with_tools(folder, reordered)) == locked
    assert lock_with_tools(folder, reordered).splitlines()[2:] == text.splitlines()[2:]


def test_what_a_contract_cannot_hold_is_left_out_with_a_note(folder: Path) -> None:
    tools = [
        {"name": "no spaces", "inputSchema": {"type": "object"}},
        {"name": "bad", "inputSchema": {"type": "objekt"}},
        {"name": "good", "inputSchema": {"type": "object"}},
    ]
    environment = ["--env", f"TOOLS={json.dumps(tools)}"]
    done = stubwright("lock", "-o", "-", *environment, "--", sys.executable, "server.py", cwd=folder)
    assert done.returncode == 0
    names = [tool["name"] for tool in yaml.safe_load(done.stdout)["tools"]]
    left_out = {"no spaces", "bad", "good"} - {*names}
    assert "bad" in left_out
    assert "good" in names
    for name in left_out:
        assert f"note: tool `{name}` was omitted: " in done.stderr


@pytest.mark.parametrize(
    ("entry", "had"),
    [
        ({}, "no `inputSchema`"),
        ({"inputSchema": True}, "`true` as its `inputSchema`"),
        ({"inputSchema": False}, "`false` as its `inputSchema`"),
        ({"inputSchema": None}, "`null` as its `inputSchema`"),
        ({"inputSchema": ["a"]}, '`["a"]` as its `inputSchema`'),
    ],
)
def test_what_is_no_schema_of_arguments_is_named(entry: dict[str, Any], had: str) -> None:
    notes: list[str] = []
    [fixed] = tools.fix([{"name": "go", **entry}], notes)
    assert fixed["inputSchema"] == {"type": "object"}
    assert notes == [f"tool `go` had {had}; a schema that accepts any arguments was used"]


def test_what_was_mended_in_a_saved_list_is_noted(folder: Path) -> None:
    (folder / "list.json").write_text('[{"name": "go", "inputSchema": true}, {"name": "odd", "title": "\\ud83d"}]')
    done = stubwright("lock", "list.json", "-o", "-", cwd=folder)
    assert done.returncode == 0
    assert [tool["name"] for tool in yaml.safe_load(done.stdout)["tools"]] == ["go", "odd"]
    assert "note: tool `go` had `true` as its `inputSchema`; a schema that accepts" in done.stderr
    assert "note: tool `odd` contained lone surrogates; each was replaced with U+FFFD" in done.stderr


# --- the weather, from its manifest and from its server -------------------------------------------------------------


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weather")
    shutil.copytree(ROOT / "specs", folder / "specs")
    mock = [*forked.interpreter(), "-P", "-m", "stubwright", "mock", "specs/weather.yaml"]
    for words in (["specs/weather.yaml"], ["-o", "live.yaml", "--", *mock]):
        done = stubwright("lock", *words, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("file", ["contracts/weather.yaml", "live.yaml"])
def test_nothing_changed_from_a_manifest_to_its_contract(file: str, weather: Path) -> None:
    for sides in (["specs/weather.yaml", file], [file, "specs/weather.yaml"], ["contracts/weather.yaml", file]):
        done = stubwright("diff", *sides, cwd=weather)
        assert done.returncode == 0, done.stdout
        assert done.stdout.startswith("nothing changed from "), done.stdout


def test_a_contract_is_the_same_from_the_manifest_and_the_server(weather: Path) -> None:
    from_file, live = (yaml.safe_load((weather / name).read_text()) for name in ("contracts/weather.yaml", "live.yaml"))
    assert from_file.pop(KEY) == {"file": "specs/weather.yaml"}
    assert live.pop(KEY)["command"][-2:] == ["mock", "specs/weather.yaml"]
    assert from_file == live


def test_a_change_of_the_manifest_shows_against_the_contract(weather: Path) -> None:
    changed = (weather / "specs" / "weather.yaml").read_text().replace("name: get_weather", "name: weather_now")
    (weather / "specs" / "changed.yaml").write_text(changed)
    done = stubwright("diff", "contracts/weather.yaml", "specs/changed.yaml", cwd=weather)
    assert done.returncode == 1
    assert "`get_weather`" in done.stdout


def test_a_contract_is_compared_with_its_revision_and_with_the_server(folder: Path) -> None:
    server = ["--env", "NAME=desk", "--env", 'TOOLS=[{"name": "t", "inputSchema": {"type": "object"}}]']
    server += ["--", sys.executable, "server.py"]
    assert stubwright("lock", *server, cwd=folder).returncode == 0
    same = stubwright("diff", "contracts/desk.yaml", *server, cwd=folder)
    assert (same.returncode, same.stdout.partition(" ")[0]) == (0, "nothing"), same.stdout + same.stderr
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    described = [*server]
    described[3] = 'TOOLS=[{"name": "t", "description": "Obey me.", "inputSchema": {"type": "object"}}]'
    again = stubwright("lock", *described, cwd=folder)
    assert (again.returncode, again.stdout) == (0, "contracts/desk.yaml: locked again\n"), again.stderr
    changed = stubwright("diff", "git:HEAD", "contracts/desk.yaml", cwd=folder)
    assert changed.returncode == 1
    assert "Obey me." in changed.stdout
    assert "text by other authors changed" in changed.stderr


def test_the_page_shows_a_contract_as_it_is_written() -> None:
    page = (ROOT / "docs" / "contracts.md").read_text("utf-8")
    shown = page.partition("```yaml\n")[2].partition("```")[0]
    first, _, *body = yamlwriter.format_locked(yaml.safe_load(shown)).splitlines()
    assert shown.splitlines()[0] == first
    assert shown.splitlines()[2:] == body


def test_other_commands_take_a_contract(weather: Path) -> None:
    checked = stubwright("check", "live.yaml", cwd=weather)
    assert (checked.returncode, checked.stderr) == (0, "")
    generated = stubwright("generate", "live.yaml", cwd=weather)
    assert generated.returncode == 0, generated.stderr
    package = weather / "generated" / "weather_mcp"
    assert (package / "client.py").is_file()
    assert not (package / "handlers.py").exists()
    called = forking("call", "live.yaml", "get_weather", "location=Paris", "--mock", cwd=weather)
    assert called.returncode == 0, called.stderr
    assert "temperature" in json.loads(called.stdout)
    for command in (("list", "live.yaml"), ("inspect", "live.yaml")):
        listed = forking(*command, cwd=weather)
        assert (listed.returncode, listed.stderr) == (0, ""), command
        assert "get_weather(location: string" in listed.stdout
    for words in (["call", "live.yaml", "get_weather", "location=Paris"], ["list", "live.yaml", "--scope", "read"]):
        started = stubwright(*words, cwd=weather)
        assert (started.returncode, started.stdout) == (2, "")
        assert "`live.yaml` generates only a client, because of its `emit`" in started.stderr
    pages = stubwright("docs", "live.yaml", "-o", "pages", cwd=weather)
    assert pages.returncode == 0, pages.stderr


@pytest.mark.long
def test_a_mock_of_a_contract_is_called_and_listed(weather: Path) -> None:
    mock = ["--", *forked.interpreter(), "-P", "-m", "stubwright", "mock", "live.yaml"]
    called = forking("call", "get_weather", "location=Paris", *mock, cwd=weather)
    assert called.returncode == 0, called.stderr
    assert "temperature" in json.loads(called.stdout)
    listed = forking("list", "live.yaml", "--mock", cwd=weather)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "get_weather(location: string" in listed.stdout


def test_a_saved_list_is_locked(folder: Path) -> None:
    (folder / "saved.json").write_text(json.dumps({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}))
    done = stubwright("lock", "saved.json", "-o", "c.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "c.yaml: locked\n"), done.stderr
    locked = yaml.safe_load((folder / "c.yaml").read_text())
    assert (locked[KEY], [tool["name"] for tool in locked["tools"]]) == ({"file": "saved.json"}, ["t"])
    again = stubwright("lock", "saved.json", "-o", "c.yaml", "--json", cwd=folder)
    assert json.loads(again.stdout) == [{"file": "c.yaml", "server": "saved.json", "state": "up to date"}]
    (folder / "other.json").write_bytes((folder / "saved.json").read_bytes())
    both = stubwright("lock", "saved.json", "other.json", cwd=folder)
    assert both.stdout == "contracts/saved.yaml: locked\ncontracts/other.yaml: locked\n", both.stderr


# --- secrets --------------------------------------------------------------------------------------------------------


async def _answer(request: Request) -> Response:
    """Run a server without sessions that requires a token, and announces that where its client asks for prompts."""
    if TOKEN not in (request.headers.get("authorization", "").removeprefix("Bearer "), request.headers.get("x-token")):
        return PlainTextResponse("no", 401)
    message = await request.json()
    if "id" not in message:
        return Response(status_code=202)
    told = TOKEN if "leak" in request.url.path else "a secret"
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "remote", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "t", "description": f"Takes {told}.", "inputSchema": {"type": "object"}}]},
    }
    known = message["method"] in results
    answer = {"result": results[message["method"]]} if known else {"error": {"code": -32601, "message": "no"}}
    return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **answer})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with asgi(Starlette(routes=[Route("/{rest:path}", _answer, methods=["POST"])])) as base:
        yield base


def test_no_secret_of_a_url_is_in_its_contract(url: str, folder: Path) -> None:
    secret_url = url.replace("://", "://user:pa55w0rd@") + "/mcp?api_key=que5ry#frag"
    done = stubwright("lock", secret_url, "--header", f"X-Token: {TOKEN}", cwd=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "contracts" / "remote.yaml").read_text()
    assert not any(secret in text for secret in (TOKEN, "pa55w0rd", "que5ry", "user:"))
    shown = url.replace("://", "://…@") + "/mcp?…"
    assert yaml.safe_load(text)[KEY] == {"url": shown, "headers": ["X-Token"]}
    assert "`verify` requires them again" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


def test_a_plain_url_is_in_its_contract(url: str, folder: Path) -> None:
    done = stubwright("lock", f"{url}/mcp", "--token", TOKEN, "-o", "c.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    read = contract.read_contract(str(folder / "c.yaml"), Disk())
    assert read.edited is None
    assert read.location == Location(url=f"{url}/mcp", headers=("Authorization",))
    assert read.location.is_complete


def test_a_server_that_lists_its_secret_is_not_locked(url: str, folder: Path) -> None:
    done = stubwright("lock", f"{url}/leak", "--token", TOKEN, cwd=folder)
    assert done.returncode == 1
    assert "its lists contain the value of Authorization, which a contract must not contain" in done.stderr
    assert TOKEN not in done.stderr
    assert not (folder / "contracts").exists()


def test_no_value_of_a_variable_is_in_a_contract(folder: Path) -> None:
    words = [sys.executable, "server.py", "--token", TOKEN, "--api-key=literal-one", "--mode", "x"]
    done = stubwright("lock", "-o", "-", "--env", f"DESK_TOKEN={TOKEN}", "--", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout
    assert "literal-one" not in done.stdout
    assert yaml.safe_load(done.stdout)[KEY] == {
        "command": [sys.executable, "server.py", "--token", "${DESK_TOKEN}", "--api-key=…", "--mode", "x"],
        "env": ["DESK_TOKEN"],
    }


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["npx", "-y", "@a/b@1.0"], ["npx", "-y", "@a/b@1.0"]),
        (["s", "--author", "Ann", "--keyboard", "us"], ["s", "--author", "Ann", "--keyboard", "us"]),
        (["s", "--password", "p", "--verbose"], ["s", "--password", "…", "--verbose"]),
        (["s", "-k", "0123abcd", "-p", "80"], ["s", "-k", "…", "-p", "80"]),
        (["s", "-k=0123abcd", "k=v", "-k"], ["s", "-k=…", "k=v", "-k"]),
        (["s", "--token", "--verbose"], ["s", "--token", "--verbose"]),
        (["s", "--header", "Authorization: Bearer abc"], ["s", "--header", "Authorization: …"]),
        (["s", "--header", "X: Bearer abcdefghijkl"], ["s", "--header", "X: …"]),
        (["docker", "run", "-e", "API_KEY=abc", "img"], ["docker", "run", "-e", "API_KEY=…", "img"]),
        (["s", "postgres://me:pw@db:5432/x?sslkey=k"], ["s", "postgres://…@db:5432/x?…"]),
        (["uvx", "--from", "git+https://github.com/o/r@v1#egg", "s"], None),
        (["s", "ghp_abcdefghijklmnop"], ["s", "…"]),
    ],
)
def test_what_may_be_secret_in_a_command_is_hidden(words: list[str], shown: list[str] | None) -> None:
    assert [*secrets.hide_in_command(words, {})] == (words if shown is None else shown)


# --- obstacles, and edited files ---------------


def test_an_edited_contract_is_noticed_and_kept(folder: Path) -> None:
    file = folder / "c.yaml"
    command = ["lock", "specs/weather.yaml", "-o", "c.yaml"]
    assert stubwright(*command, cwd=folder).returncode == 0
    assert contract.read_contract(str(file), Disk()).edited is None
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert contract.read_contract(str(file), Disk()).edited is None
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert stubwright(*command, cwd=folder).returncode == 0  # a byte order mark makes it no other file
    file.write_text(file.read_text().replace("Get current", "Get any"))
    found = contract.read_contract(str(file), Disk()).edited
    assert found is not None
    assert (found.code, getattr(found.at, "file", ""), getattr(found.at, "line", 0)) == ("SW402", str(file), 2)
    kept = stubwright(*command, cwd=folder)
    assert kept.returncode == 1
    assert (
        "c.yaml:1:1: error[SW403]: this contract was edited after it was locked, so it was left unchanged"
        in kept.stderr
    )
    assert "Get any" in file.read_text()
    forced = stubwright(*command, "--force", cwd=folder)
    assert (forced.returncode, forced.stdout) == (0, "c.yaml: locked again\n")
    assert "Get any" not in file.read_text()


def test_a_digest_that_is_gone_counts_as_an_edit(folder: Path) -> None:
    assert stubwright("lock", "specs/weather.yaml", "-o", "c.yaml", cwd=folder).returncode == 0
    first, _, *rest = (folder / "c.yaml").read_text().splitlines(keepends=True)
    (folder / "c.yaml").write_text("".join([first, *rest]))
    assert contract.read_contract(str(folder / "c.yaml"), Disk()).edited is not None


def test_files_that_are_not_contracts(folder: Path) -> None:
    (folder / "c.yaml").write_text("mine: 1\n")
    done = stubwright("lock", "specs/weather.yaml", "-o", "c.yaml", cwd=folder)
    assert (done.returncode, (folder / "c.yaml").read_text()) == (1, "mine: 1\n")
    assert "this file is not a contract, so it was left unchanged" in done.stderr
    with pytest.raises(DocumentError, match="this file is not a contract"):
        contract.read_contract(str(folder / "c.yaml"), Disk())
    (folder / "c.yaml").unlink()
    assert stubwright("lock", "specs/weather.yaml", "-o", "c.yaml", cwd=folder).returncode == 0
    (folder / "c.yaml").write_text((folder / "c.yaml").read_text().replace("  file: specs/weather.yaml", "  file: 1"))
    with pytest.raises(DocumentError, match="has no server location") as raised:
        contract.read_contract(str(folder / "c.yaml"), Disk())
    assert raised.value.diagnostics[0].at is not None
    again = stubwright("lock", "c.yaml", cwd=folder)
    assert (again.returncode, again.stderr) == (1, "stubwright: `c.yaml` cannot be locked: it is already a contract\n")


def test_a_contract_without_its_server_is_not_replaced(folder: Path) -> None:
    (folder / "contracts").mkdir()
    file = folder / "contracts" / "weather.yaml"
    file.write_text(text := yamlwriter.format_locked({"stubwright": 1, "server": {"name": "weather", "version": "1"}}))
    done = stubwright("lock", "specs/weather.yaml", cwd=folder)
    assert (done.returncode, file.read_text()) == (1, text)
    assert "this contract has no server location" in done.stderr


def test_an_import_does_not_replace_a_contract(folder: Path) -> None:
    (folder / "saved.json").write_text('{"tools": []}')
    assert stubwright("lock", "specs/weather.yaml", "-o", "c.yaml", cwd=folder).returncode == 0
    done = stubwright("import", "tools", "saved.json", "-o", "c.yaml", cwd=folder)
    assert done.returncode == 1
    assert "this file was not imported" in done.stderr


def test_the_contract_of_another_server_with_the_same_name_is_kept(folder: Path) -> None:
    shutil.copy(folder / "specs" / "weather.yaml", folder / "specs" / "other.yaml")
    done = stubwright("lock", "specs/weather.yaml", "specs/other.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "contracts/weather.yaml: locked\n")
    assert "this file was just written for `specs/weather.yaml`; `specs/other.yaml` has the same name" in done.stderr
    later = stubwright("lock", "specs/other.yaml", cwd=folder)
    assert later.returncode == 1
    assert "this is the contract for another server, `specs/weather.yaml`, so it was left unchanged" in later.stderr
    forced = stubwright("lock", "specs/other.yaml", "--force", cwd=folder)
    assert (forced.returncode, forced.stdout) == (0, "contracts/weather.yaml: locked again\n")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("weather", "weather.yaml"),
        ("My Server/1.0", "my-server-1-0.yaml"),
        ("../../etc/passwd", "etc-passwd.yaml"),
        ("CON", "con-server.yaml"),
        ("天気", "server-bc79d84d.yaml"),
        ("a" * 200, f"{'a' * 64}.yaml"),
    ],
)
def test_the_file_of_a_name_is_one_that_every_system_allows(name: str, file: str) -> None:
    assert files.make_name(name) == file
    assert paths.find_misfit(file) is None


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit(3)", "exited with status 3 before its first response"),
        (
            "print('hello', flush=True)\nimport sys\nsys.stdin.read()",
            "did not respond within 1 s; allow more time with --timeout; it sent a line that is not JSON-RPC",
        ),
        ("import sys; sys.stdin.read()", "did not respond within 1 s"),
    ],
)
def test_a_command_that_is_no_server(program: str, said: str, folder: Path) -> None:
    done = stubwright("lock", "--timeout", "1", "--", sys.executable, "-c", program, cwd=folder)
    assert done.returncode == 3
    assert said in done.stderr
    assert not (folder / "contracts").exists()


def test_a_run_that_is_broken_off_leaves_nothing(folder: Path) -> None:
    waiting = "import sys, time; print('started', file=sys.stderr, flush=True); time.sleep(60)"
    before = {path.name for path in folder.iterdir()}
    command = [*forked.interpreter(), "-P", "-m", "stubwright", "lock"]
    command += ["--", sys.executable, "-c", f"open('up', 'w').close(); {waiting}"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as process:
        for _ in range(200):
            if (folder / "up").exists():
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
    assert {path.name for path in folder.iterdir()} - {"up"} == before


def test_servers_that_are_away_do_not_stop_the_others(folder: Path) -> None:
    done = stubwright("lock", "http://127.0.0.1:1/mcp", "specs/weather.yaml", "none.yaml", cwd=folder)
    assert (done.returncode, done.stdout) == (3, "contracts/weather.yaml: locked\n")
    assert "`http://127.0.0.1:1/mcp` cannot be reached" in done.stderr
    assert "`none.yaml`" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "specify a server"),
        (["ftp://x/y"], "`ftp://x/y` is not an http or https URL\n"),
        (["specs/weather.yaml", "--", "true"], "not both"),
        (["a.yaml", "b.yaml", "-o", "c.yaml"], "-o names one file"),
        (["a.yaml", "-o", "c.json"], "a contract is a .yaml file"),
        (["a.yaml", "--token", "x"], "--header and --token are for one URL; no URL is specified"),
        (["http://a/", "http://b/", "--token", "x"], "several servers would get the same secrets"),
        (["http://a/", "--env", "A=1"], "--env is for a command after `--`"),
        (["--config", ".mcp.json", "--token", "x"], "--config specifies the servers"),
    ],
)
def test_a_wrong_command_line_locks_nothing(words: list[str], said: str, folder: Path) -> None:
    done = stubwright("lock", *words, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr


# --- the configuration of a client ---------------------------------------------------------------------------------


def test_each_server_of_a_configuration_is_locked(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMOTE_TOKEN", TOKEN)
    config = {
        "mcpServers": {
            "desk": {"command": sys.executable, "args": ["server.py"], "env": {"DESK_KEY": "k3y-of-the-desk"}},
            "Far away": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
            "remote": {"type": "http", "url": f"{url}/mcp", "headers": {"Authorization": "Bearer ${REMOTE_TOKEN}"}},
            "lacking": {"command": "true", "args": ["${NOT_THERE_AT_ALL}"]},
            "off": {"command": "true", "disabled": True},
            "odd": {"command": 1},
            "local": {"url": "file:///k3y-of-the-file"},
        }
    }
    (folder / ".mcp.json").write_text(json.dumps(config))
    done = stubwright("lock", "--config", ".mcp.json", cwd=folder)
    assert (done.returncode, done.stdout) == (3, "contracts/desk.yaml: locked\ncontracts/remote.yaml: locked\n")
    assert "`Far away` of .mcp.json cannot be locked:" in done.stderr
    assert "`lacking` of .mcp.json cannot be locked: it needs the variable `NOT_THERE_AT_ALL`" in done.stderr
    assert "`odd` of .mcp.json cannot be locked: its entry has a value that is not a string" in done.stderr
    assert "`local` of .mcp.json cannot be locked: its URL is not http or https" in done.stderr
    assert "k3y-of-the-file" not in done.stderr
    assert "`off` of .mcp.json is disabled" in done.stderr
    desk, remote = ((folder / "contracts" / name).read_text() for name in ("desk.yaml", "remote.yaml"))
    assert yaml.safe_load(desk)[KEY] == {"command": [sys.executable, "server.py"], "env": ["DESK_KEY"]}
    assert yaml.safe_load(remote)[KEY] == {"url": f"{url}/mcp", "headers": ["Authorization"]}
    assert "k3y-of-the-desk" not in desk
    assert TOKEN not in remote


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("mcp.json", '{"servers": {"desk": {"command": "PYTHON", "args": ["server.py",],},}, /* none */ "inputs": []}'),
        ("config.toml", '[mcp_servers.desk]\ncommand = "PYTHON"\nargs = ["server.py"]\n'),
        ("settings.json", '{"context_servers": {"desk": {"command": "PYTHON", "args": ["server.py"]}}}'),
    ],
)
def test_other_clients_write_it_in_other_forms(file: str, text: str, folder: Path) -> None:
    (folder / file).write_text(text.replace("PYTHON", sys.executable))
    done = stubwright("lock", "--config", file, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "contracts/desk.yaml: locked\n"), done.stderr


@pytest.mark.parametrize(
    ("text", "said"), [("{", "c.json:1:"), ("{}", "has no servers"), (None, "c.json"), ('{"servers": 1}', "has no")]
)
def test_a_configuration_that_is_wrong(text: str | None, said: str, folder: Path) -> None:
    if text is not None:
        (folder / "c.json").write_text(text)
    done = stubwright("lock", "--config", "c.json", cwd=folder)
    assert done.returncode == 1
    assert said in done.stderr


def test_help_and_completion_know_the_command(tmp_path: Path) -> None:
    assert "  lock  " in stubwright("--help", cwd=tmp_path).stdout
    script = stubwright("completion", "bash", cwd=tmp_path).stdout
    assert "_shtab_stubwright_lock_option_strings" in script
    assert "--config" in script.partition("_shtab_stubwright_lock_option_strings=")[2].partition("\n")[0]
