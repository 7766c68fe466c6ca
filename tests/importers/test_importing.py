"""`stubwright import mcp`: manifests from odd, broken and real servers."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

import amounts
import conformance
import forked
from command_line import stubwright
from packages import check, imported
from processes import await_end, start_process
from serving import ScriptedServer, asgi, serve
from stubwright.compile.syntax import yamlwriter
from stubwright.importers import live, servers, sources
from stubwright.importers.limits import Limits
from stubwright.importers.server_listing import ServerListing
from stubwright_runtime.client.core.environment import select_inherited

CASES = Path(__file__).parents[1] / "imports"
SCRIPTED = str(Path(__file__).parents[1] / "support" / "scripted.py")
MODERN = "2026-07-28"
HELLO = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hello", "version": "1"},
    }
}
TOOL = {"name": "go", "description": "Go.", "inputSchema": {"type": "object"}}


def scripted(folder: Path, script: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    """Import from a server that answers as `script` says."""
    (folder / "server.json").write_text(json.dumps(script))
    return stubwright("import", "mcp", *options, "--", sys.executable, SCRIPTED, "server.json", cwd=folder)


# --- what comes out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_import_gives_a_manifest_and_says_what_it_is(name: str, tmp_path: Path, update: bool) -> None:
    script = json.loads((CASES / name / "server.json").read_text("utf-8"))
    done = scripted(tmp_path, script, "-o", "m.yaml")
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "m.yaml").read_text("utf-8")
    if update:
        (CASES / name / "manifest.yaml").write_text(made)
        (CASES / name / "stderr.txt").write_text(done.stderr)
    assert made == (CASES / name / "manifest.yaml").read_text("utf-8")
    assert done.stderr == (CASES / name / "stderr.txt").read_text("utf-8")
    generated = stubwright("generate", "m.yaml", cwd=tmp_path)
    assert generated.returncode == 0, generated.stderr


json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(some.text(max_size=8), inner, max_size=2),
    max_leaves=5,
)
words = some.sampled_from(
    ["a", "A", "a-b", "a_b", "read_a", "prompt_a", "é", "import", "", "x" * 70, "1", "\x07", "\x85"]
)
uris = some.sampled_from(["a:b", "a:B", "file:///a/b", "none", "a:{b}", "a:{b", "", "é:x"])
schemas = json_values | some.fixed_dictionaries(
    {},
    optional={
        "type": some.just("object") | json_values,
        "properties": some.dictionaries(words, json_values, max_size=2) | json_values,
        "$ref": some.sampled_from(["#/$defs/x", "m.yaml#/schemas/X", "https://example.com/", "#"]),
        "required": json_values,
        "$schema": json_values,
    },
)
entries = some.lists(
    json_values
    | some.fixed_dictionaries(
        {},
        optional={
            "name": words | json_values,
            "uri": uris | json_values,
            "uriTemplate": uris | json_values,
            "inputSchema": schemas,
            "outputSchema": schemas,
            **dict.fromkeys(
                (
                    "title",
                    "description",
                    "arguments",
                    "annotations",
                    "icons",
                    "_meta",
                    "execution",
                    "stubwright",
                    "size",
                ),
                json_values,
            ),
        },
    ),
    max_size=3,
)


@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 20, 40, 40))
@given(
    info=some.dictionaries(
        some.sampled_from(["name", "version", "title", "icons", "instructions"]), words | json_values
    ),
    sections=some.fixed_dictionaries(dict.fromkeys(("tools", "resources", "resourceTemplates", "prompts"), entries)),
)
def test_whatever_a_server_says_becomes_a_manifest_that_passes_check(
    info: dict[str, Any], sections: dict[str, list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = servers.make_manifest(
        ServerListing(MODERN, info, {"completions": {}}, sections), name=None, default_name="server"
    )
    assert yaml.safe_load(yamlwriter.format_manifest(made.manifest)) == made.manifest
    found = check(tmp_path_factory.getbasetemp(), made.manifest)
    assert [one for one in found if one.severity == "error"] == []


@pytest.mark.long
def test_the_parts_of_a_refreshed_manifest_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(
        "stubwright: 1\nserver: {name: mine, version: '1'}\ninclude: [vendor.yaml]\n"
        "overlay: {tools: {go: {policy: {confirm: true}}}}\n"
    )
    refreshed = ("--fragment", "-o", "vendor.yaml")
    assert scripted(tmp_path, {**HELLO, "tools/list": {"tools": [TOOL]}}, *refreshed).returncode == 0
    assert "server" not in yaml.safe_load((tmp_path / "vendor.yaml").read_text())
    assert stubwright("generate", "m.yaml", cwd=tmp_path).returncode == 0
    first = json.loads((tmp_path / "generated/mine_mcp/manifest.json").read_text())["tools"]
    assert first == [{**TOOL, "stubwright": {"policy": {"confirm": True}}}]
    other = {**TOOL, "description": "Go now."}
    assert scripted(tmp_path, {**HELLO, "tools/list": {"tools": [other]}}, *refreshed).returncode == 0
    assert stubwright("generate", "m.yaml", cwd=tmp_path).returncode == 0
    second = json.loads((tmp_path / "generated/mine_mcp/manifest.json").read_text())["tools"]
    assert second == [{**other, "stubwright": {"policy": {"confirm": True}}}]
    gone = {**TOOL, "name": "went"}
    assert scripted(tmp_path, {**HELLO, "tools/list": {"tools": [gone]}}, *refreshed).returncode == 0
    refused = stubwright("check", "m.yaml", cwd=tmp_path)
    assert refused.returncode == 1
    assert "error[SW250]" in refused.stderr


def test_a_prefix_goes_before_tools_and_prompts(tmp_path: Path) -> None:
    script = {
        "initialize": {**HELLO["initialize"], "capabilities": {"tools": {}, "prompts": {}}},
        "tools/list": {"tools": [TOOL]},
        "prompts/list": {"prompts": [{"name": "review"}]},
    }
    done = scripted(tmp_path, script, "--prefix", "h_", "--name", "mine")
    made = yaml.safe_load(done.stdout)
    assert (made["server"]["name"], made["tools"][0]["name"], made["prompts"][0]["name"]) == (
        *("mine", "h_go"),
        "h_review",
    )


# --- information about its client -------------------------------------------------------------------------------------

CHOOSY = str(Path(__file__).parents[1] / "support" / "choosy.py")
ASKED = (
    "requests from the server were declined: `elicitation/create`, `roots/list`, `sampling/createMessage`; "
    "the import declares sampling, elicitation and roots, so that the server lists everything"
)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
def test_tools_for_clients_that_can_more_are_listed_too(revision: str) -> None:
    listed = live.read(sources.Command([*forked.interpreter(), CHOOSY, "--silent"]), revision=revision)
    assert [tool["name"] for tool in listed.sections["tools"]] == ["all", "sample", "form", "url", "roots"]
    assert (listed.revision, listed.notes) == (revision, ())


def test_a_server_that_asks_is_declined_and_that_is_told(tmp_path: Path) -> None:
    listed = live.read(sources.Command([*forked.interpreter(), CHOOSY]), revision="2025-11-25")
    assert {tool["description"] for tool in listed.sections["tools"]} == {"decline, decline, 0 roots, -1"}
    assert listed.notes == (ASKED,)
    done = stubwright("import", "mcp", "--", *forked.interpreter(), CHOOSY, cwd=tmp_path)
    assert [tool["name"] for tool in yaml.safe_load(done.stdout)["tools"]] == ["all", "sample", "form", "url", "roots"]
    assert "asked its client" not in done.stderr, "without a handshake it cannot ask"


# --- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "said"),
    amounts.sample(
        [
            (
                {"$stderr": "\n".join(f"line {n} \x1b[1mof many" for n in range(30)), "$exit": "initialize"},
                " exited with status 3 before its first response\n"
                + "\n".join("  | …" if n == 5 else f"  | line {n} �[1mof many" for n in (*range(6), *range(20, 30))),
            ),
            (
                {**HELLO, "tools/list": {"tools": [TOOL], "nextCursor": "again"}},
                " answers `tools/list` with a list that is cyclic: the cursor 'again' repeats",
            ),
            ({**HELLO, "tools/list": {"tool": []}}, " answers `tools/list` without a list of `tools`"),
            (
                {**HELLO, "tools/list": {"code": -32603, "message": "out\nof order"}},
                " responded with an error: out of order (-32603)",
            ),
            (
                {"initialize": {**HELLO["initialize"], "protocolVersion": "1999-01-01"}},
                " uses an unknown revision of the protocol: '1999-01-01'",
            ),
        ],
        2,
    ),
)
def test_a_server_that_breaks_down_is_told(script: dict[str, Any], said: str, tmp_path: Path) -> None:
    done = scripted(tmp_path, script, "-o", "m.yaml")
    assert (done.returncode, done.stderr) == (1, f"stubwright: `{sys.executable}`{said}\n")
    assert not (tmp_path / "m.yaml").exists()


@pytest.mark.long
def test_a_command_that_is_still_fetched_has_time_to_start(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps({**HELLO, "tools/list": {"tools": [TOOL]}}))
    server = [sys.executable, SCRIPTED, str(tmp_path / "script.json")]
    slow = sources.Command(["sh", "-c", 'sleep 1.2; exec "$@"', "sh", *server])
    told: list[float] = []
    begun = time.monotonic()
    listed = live.read(slow, Limits(1, 60), started=lambda: told.append(time.monotonic() - begun))
    assert listed.sections["tools"] == [TOOL]
    assert told[0] > 1.2
    with pytest.raises(live.UnreachableError, match=r"`sh` did not respond within 0\.2 s"):
        live.read(slow, Limits(0.2))
    with pytest.raises(live.UnreachableError, match=r"sent no response within 0\.2 s of its start; allow more time"):
        live.read(slow, Limits(60, 0.2))


@pytest.mark.parametrize("silent", ["server/discover", "tools/list"])
def test_time_is_bounded_and_the_process_is_gone(silent: str, tmp_path: Path) -> None:
    script = {**HELLO, "tools/list": {"tools": [TOOL]}, silent: None, "$pid": str(tmp_path / "pid"), "$stdout": "Hi!"}
    started = time.monotonic()
    done = scripted(tmp_path, script, "--timeout", "1.5")
    assert time.monotonic() - started < 60
    assert done.returncode == 1
    assert done.stderr == (
        f"stubwright: `{sys.executable}` did not respond within 1.5 s; allow more time with --timeout; "
        "it sent a line that is not JSON-RPC\n"
    )
    await_end(int((tmp_path / "pid").read_text()))


IMPORT, DIFF = ["import", "mcp"], ["diff", "m.yaml"]


@pytest.mark.parametrize(
    ("verb", "number", "before", "status"),
    [
        (IMPORT, signal.SIGINT, signal.SIG_DFL, 130),
        (DIFF, signal.SIGTERM, signal.SIG_DFL, 143),
        amounts.mark_long((IMPORT, signal.SIGTERM, signal.SIG_IGN, 143)),  # as of a shell's background job
        amounts.mark_long((DIFF, signal.SIGHUP, signal.SIG_DFL, 129)),
        amounts.mark_long((DIFF, signal.SIGINT, signal.SIG_DFL, 130)),
        amounts.mark_long((IMPORT, signal.SIGTERM, signal.SIG_DFL, 143)),
        amounts.mark_long((DIFF, signal.SIGTERM, signal.SIG_IGN, 143)),
        amounts.mark_long((IMPORT, signal.SIGHUP, signal.SIG_DFL, 129)),
    ],
)
def test_a_signal_ends_the_process_too(
    verb: list[str], number: signal.Signals, before: signal.Handlers, status: int, tmp_path: Path
) -> None:
    (tmp_path / "m.yaml").write_text("stubwright: 1\nserver: {name: mine, version: '1'}\n")
    pid = tmp_path / "pid"
    server = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(60)"
    # What was ignored before a process was started reaches no forked one.
    python = [sys.executable] if before == signal.SIG_IGN else forked.interpreter()
    command = [*python, "-m", "stubwright", *verb, "--", sys.executable, "-c", server]
    with start_process(
        command, cwd=tmp_path, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, before)
    ) as process:
        started = time.monotonic()
        while not (pid.exists() and pid.read_text()):
            assert time.monotonic() - started < 60
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (status, b"")
    await_end(int(pid.read_text()))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "specify one server: a URL, or a command after `--`"),
        (["http://localhost/mcp", "--", "true"], "specify one server: a URL, or a command after `--`"),
        (["--"], "the command after `--` is empty"),
        (["true"], "`true` is not an http or https URL; put a command after `--`, as in: -- true"),
        (["npx", "server"], "put `--` before a command, as in: stubwright import mcp -- npx server"),
        (["npx", "-y", "server"], "unrecognized arguments: -y server; put `--` before a command"),
        (["file:///etc/passwd"], "`file:///etc/passwd` is not an http or https URL"),
        (["http://localhost/mcp", "--header", "secret"], "--header requires NAME:VALUE"),
        (["http://localhost/mcp", "--header", "X: a\nb"], "the value of the header `X` contains a character"),
        (["http://localhost/mcp", "--env", "A=1"], "--env is for a command"),
        (["--header", "A: b", "--", "true"], "--header and --token are for a URL"),
        (["--env", "NOT_THERE_AT_ALL", "--", "true"], "--env NOT_THERE_AT_ALL: the variable is not set"),
        (["--client", "--prefix", "x_", "--", "true"], "so the server would reject calls: omit --client"),
        (["--client", "--fragment", "--", "true"], "--client cannot be combined with --fragment"),
        (["--typescript", "--fragment", "--", "true"], "--typescript cannot be combined with --fragment"),
        (["--timeout", "0", "--", "true"], "`0` is not a positive number of seconds"),
    ],
)
def test_a_wrong_command_line_starts_nothing(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = stubwright("import", "mcp", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("program", "end"),
    amounts.sample(
        [
            ("raise SystemExit(3)", "exited with status 3"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was terminated by SIGKILL"),
            ("import os, time; os.close(1); time.sleep(60)", "closed its standard output"),
        ],
        1,
    ),
)
@pytest.mark.usefixtures("nothing_to_pass")
def test_how_a_program_ended_is_told(program: str, end: str, tmp_path: Path) -> None:
    done = stubwright("import", "mcp", "--", sys.executable, "-c", program, cwd=tmp_path)
    told = f"stubwright: `{sys.executable}` {end} before its first response\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    done = stubwright("import", "mcp", "--", "no-such-program", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "stubwright: `no-such-program` cannot be started: program not found; is it installed?\n",
    )


@pytest.mark.usefixtures("nothing_to_pass")
def test_the_environment_is_passed_on_where_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "one")
    monkeypatch.setenv("C", "three")
    program = "import os, sys; print(os.environ.get('A'), os.environ.get('B'), os.environ.get('C'), file=sys.stderr)"
    command = ["--env", "A", "--env", "B=two", "--", sys.executable, "-c", program]
    done = stubwright("import", "mcp", *command, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "  | one two None"


@pytest.mark.parametrize(
    "verb",
    amounts.sample([["import", "mcp"], ["new", "mine", "--from", "mcp"], ["list"], ["inspect"], ["diff", "m.yaml"]], 2),
)
def test_a_program_that_lacks_a_variable_is_told_with_the_option_that_passes_it(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_MODE", "hidden")
    (tmp_path / "m.yaml").write_text("stubwright: 1\nserver: {name: shop, version: 1.0.0}\n")
    done = stubwright(*verb, "--", sys.executable, "-c", "import os; os.environ['SHOP_MODE']", cwd=tmp_path)
    assert done.returncode != 0
    assert (
        "  | KeyError: 'SHOP_MODE'\n"
        "  help: the command did not inherit SHOP_MODE, which is set here; pass it with --env SHOP_MODE\n"
    ) in done.stderr
    assert "hidden" not in done.stderr


@pytest.mark.usefixtures("nothing_to_pass")
def test_a_program_that_says_nothing_may_lack_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A_KEY", "B_URL", "C_MODE", "D_URL"):
        monkeypatch.setenv(name, "hidden")
    command = ["--env", "D_URL", "--", sys.executable, "-c", "raise SystemExit(3)"]
    done = stubwright("import", "mcp", *command, cwd=tmp_path)
    assert done.stderr.splitlines()[1:] == [
        "  help: the command did not inherit A_KEY, B_URL, which are set here; pass the ones it needs with --env NAME"
    ]


def test_package_runners_get_what_they_need_to_fetch_a_server() -> None:
    needed = {
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("HTTP_PROXY", "https_proxy", "NO_PROXY", "all_proxy"),
        *("PIP_INDEX_URL", "UV_INDEX_URL", "npm_config_registry", "NPM_CONFIG_REGISTRY"),
    }
    others = {"UV_PUBLISH_TOKEN", "PIP_", "pip_index_url", "MY_HTTP_PROXY", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH"}
    assert select_inherited(dict.fromkeys(needed | others, "x")) == dict.fromkeys(needed, "x")


@pytest.mark.parametrize(
    "verb", [["import", "mcp"], ["new", "mine", "--from", "mcp"], ["call", "go"], ["list"], ["diff", "m.yaml"]]
)
def test_every_command_gets_what_package_runners_need(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.yaml").write_text("stubwright: 1\nserver: {name: shop, version: 1.0.0}\n")
    monkeypatch.setenv("UV_INDEX_URL", "https://pypi.example/simple")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    program = "import os, sys; sys.exit(os.environ['UV_INDEX_URL'] + ' ' + os.environ['HTTPS_PROXY'])"
    command = ["--env", "HTTPS_PROXY=http://other.example", "--", sys.executable, "-c", program]
    done = stubwright(*verb, *command, cwd=tmp_path)
    assert "https://pypi.example/simple http://other.example" in done.stderr


# --- over HTTP -----------------------------------------------------------------------------------------------------


async def _says_no(request: Request) -> Response:
    return PlainTextResponse("no", int(request.path_params["status"]), {"WWW-Authenticate": 'Bearer realm="\x1b[1mx"'})


async def _elsewhere(_request: Request) -> Response:
    return RedirectResponse("http://example.com/mcp", 307)


async def _no_mcp(_request: Request) -> Response:
    return PlainTextResponse("<html>hello</html>")


@pytest.fixture(scope="module")
def strange() -> Iterator[str]:
    routes = [
        Route("/status/{status}", _says_no, methods=["POST"]),
        Route("/elsewhere", _elsewhere, methods=["POST"]),
        Route("/page", _no_mcp, methods=["POST"]),
    ]
    with asgi(Starlette(routes=routes)) as url:
        yield url


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "/status/401?token=hidden",
            (
                "returns HTTP 401 Unauthorized: the request had no token; "
                'it requests `Bearer realm="�[1mx"`; no; add credentials'
            ),
        ),
        ("/status/500", "returns HTTP 500 Internal Server Error"),
        ("/missing", "returns HTTP 404 Not Found"),
        ("/elsewhere", "HTTP 307 Temporary Redirect, which redirects to 'http://example.com/mcp'"),
        ("/page", "is not an MCP endpoint: it returns HTTP 200 OK (text/plain)"),
    ],
)
def test_an_endpoint_that_says_no(path: str, said: str, strange: str, tmp_path: Path) -> None:
    done = stubwright("import", "mcp", strange + path, "--timeout", "20", cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr, done.stderr
    assert "hidden" not in done.stderr
    assert "\x1b" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["mcp", "openapi"])
def test_a_proxy_that_refuses_is_not_taken_for_the_host(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("import", kind, "http://example.invalid/x.json")
    monkeypatch.setenv("HTTP_PROXY", "http://me:hidden@127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "other.invalid")
    done = stubwright(*command, cwd=tmp_path)
    assert done.returncode == 1
    why = "through the proxy http://127.0.0.1:1: connection refused"
    assert f": {why}; check the proxy\n" in done.stderr
    assert "hidden" not in done.stderr
    with monkeypatch.context() as patch:
        patch.setenv("HTTP_PROXY", "[::1")
        unusable = stubwright(*command, cwd=tmp_path)
    assert ": the proxy in the environment variable http_proxy is not a URL" in unusable.stderr
    assert "check the URL" not in unusable.stderr
    monkeypatch.setenv("NO_PROXY", "example.invalid")
    direct = stubwright(*command, cwd=tmp_path)
    assert ": unknown host; check the URL" in direct.stderr


@pytest.mark.parametrize("command", ["import mcp", "import openapi", "record --http 127.0.0.1:0"])
def test_certificates_that_cannot_be_read_are_named(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "missing.pem")
    done = stubwright(*command.split(), "https://example.invalid/x.json", cwd=tmp_path)
    assert done.returncode != 0
    assert done.stderr.endswith("cannot use SSL_CERT_FILE='missing.pem': No such file or directory\n")
    assert "Traceback" not in done.stderr


def test_nobody_at_the_url(tmp_path: Path) -> None:
    done = stubwright("import", "mcp", "http://me:hidden@127.0.0.1:1/mcp", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "stubwright: `http://127.0.0.1:1/mcp` cannot be reached: connection refused; "
        "check the URL, and that the server runs\n"
    )
    assert "hidden" not in done.stderr


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_headers_go_with_every_request_and_all_pages_come(era: str, tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def listed(ctx: Any) -> dict[str, Any]:
        seen.append(ctx.request.headers.get("x-key"))
        number = int((ctx.params or {}).get("cursor") or 0)
        more = {"nextCursor": str(number + 1)} if number < 4 else {}
        return {"tools": [{**TOOL, "name": f"go_{number}"}], "ttlMs": 0, "cacheScope": "private", **more}

    handling = ScriptedServer(tools_list=listed)
    handling.handshake = era == "handshake"
    with serve(handling.server) as url:
        done = stubwright("import", "mcp", url, "--header", "X-Key: k1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [tool["name"] for tool in yaml.safe_load(done.stdout)["tools"]] == [f"go_{n}" for n in range(5)]
    assert set(seen) == {"k1"}


LIES: dict[str, Any] = {"readOnlyHint": True, "destructiveHint": False}


@pytest.mark.parametrize("trusted", [(), ("wipe",), ("look", "wipe")])
def test_the_hints_of_an_imported_server_count_where_somebody_trusts_them(
    trusted: tuple[str, ...], tmp_path: Path
) -> None:
    tools = [{**TOOL, "name": name, "annotations": LIES} for name in ("look", "wipe")]
    lists = {"tools/list": {"tools": tools}, "tools/call": {"content": [], "resultType": "complete"}}
    done = scripted(tmp_path, {**HELLO, **lists}, "--client", "--name", "liar", "-o", "m.yaml")
    assert done.returncode == 0, done.stderr
    assert (
        "note: the hints of its tools are not trusted, because they come from the server: the client calls `confirm`"
        " before each call; add `overlay: {tools: {NAME: {policy: {trusted: true}}}}` to trust the hints of a tool"
        in done.stderr
    )
    made = yaml.safe_load((tmp_path / "m.yaml").read_text("utf-8"))
    assert (made["emit"], made["client"]) == (["client"], {"hints": "untrusted", "revision": "2025-11-25"})
    overlay = {"tools": {name: {"policy": {"trusted": True}} for name in trusted}}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({**made, "overlay": overlay}))
    assert stubwright("check", "m.yaml", cwd=tmp_path).returncode == 0
    assert stubwright("generate", "m.yaml", cwd=tmp_path).returncode == 0
    asked: list[str] = []

    def confirm(name: str, _: Any) -> bool:
        asked.append(name)
        return True

    async def call(package: Any) -> None:
        command = [sys.executable, SCRIPTED, str(tmp_path / "server.json")]
        async with package.LiarClient.connect(command, confirm=confirm) as client:
            await client.look()
            await client.wipe()

    with imported(tmp_path / "generated", "liar_mcp") as package:
        anyio.run(call, package)
    assert asked == [name for name in ("look", "wipe") if name not in trusted]


def test_an_import_for_typescript_makes_a_client_that_trusts_no_hints(tmp_path: Path) -> None:
    lists = {"tools/list": {"tools": [{**TOOL, "annotations": LIES}]}}
    done = scripted(tmp_path, {**HELLO, **lists}, "--typescript", "--client", "--name", "liar", "-o", "m.yaml")
    assert "are not trusted" in done.stderr
    assert yaml.safe_load((tmp_path / "m.yaml").read_text("utf-8"))["emit"] == ["client", "typescript"]
    assert scripted(tmp_path, {**HELLO, **lists}, "--typescript", "--name", "liar", "-o", "t.yaml").returncode == 0
    assert stubwright("generate", "t.yaml", cwd=tmp_path).returncode == 0
    assert "{ isDangerous: true }" in (tmp_path / "generated" / "typescript" / "liar_mcp.ts").read_text("utf-8")


def test_an_import_that_is_no_client_or_has_no_tools_says_nothing_of_trust(tmp_path: Path) -> None:
    lists = {"tools/list": {"tools": [{**TOOL, "annotations": LIES}]}}
    assert "trusted" not in scripted(tmp_path, {**HELLO, **lists}).stderr
    assert "trusted" not in scripted(tmp_path, {**HELLO, "tools/list": {"tools": []}}, "--client").stderr


# --- real servers --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_compiled_server_over_http_from_import_to_call(tmp_path: Path) -> None:
    with conformance.serving("everything_mcp", conformance.paths(), tmp_path / "server.log") as url:
        done = stubwright("import", "mcp", url, "--client", "-o", "m.yaml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert stubwright("check", "m.yaml", cwd=tmp_path).returncode == 0
        assert stubwright("generate", "m.yaml", cwd=tmp_path).returncode == 0
        made = yaml.safe_load((tmp_path / "m.yaml").read_text("utf-8"))
        assert json.dumps(bare(made["tools"]), sort_keys=True) == json.dumps(listed(url, "tools"), sort_keys=True)
        for section in ("resources", "prompts", "resourceTemplates"):
            assert bare(made[section]) == listed(url, section)
        package = tmp_path / "generated/everything_mcp"
        assert not [name for name in ("server.py", "handlers.py", "__main__.py") if (package / name).exists()]
        program = (
            "import asyncio, sys, mcp, mcp.client.stdio, mcp.client.streamable_http\n"
            "before = set(sys.modules)\n"
            "from everything_mcp import EverythingClient\n"
            "async def main():\n"
            f"    async with EverythingClient.connect({url!r}, drift='error') as client:\n"
            "        print((await client.test_simple_text())[0].text)\n"
            "        print((await client.read_static_text())[0].text)\n"
            "asyncio.run(main())\n"
            "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
            "server_only = {'uvicorn', 'starlette', 'sse_starlette', 'limits', 'redis', 'docket', 'stubwright'}\n"
            "print(sorted(new & server_only))\n"
        )
        called = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "generated")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert called.returncode == 0, called.stderr
    assert called.stdout.splitlines() == [
        "This is a simple text response for testing.",
        "This is the content of the static text resource.",
        "[]",
    ]


def bare(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries without what is stubwright's."""
    return [{key: value for key, value in entry.items() if key != "stubwright"} for entry in entries]


def listed(url: str, section: str) -> list[Any]:
    """Return the server's lists in wire format, from the SDK's own client."""
    methods = {"tools": "list_tools", "resources": "list_resources", "prompts": "list_prompts"}

    async def ask() -> list[Any]:
        async with mcp.Client(url) as client:
            result = await getattr(client, methods.get(section, "list_resource_templates"))()
            found: list[Any] = result.model_dump(mode="json", by_alias=True, exclude_unset=True)[section]
            return found

    return anyio.run(ask)


FILESYSTEM = (*("npx", "-y", "-p", "node@22", "-p", "@modelcontextprotocol/server-filesystem"), "mcp-server-filesystem")


@pytest.fixture(scope="module")
def filesystem(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The filesystem server of MCP's own project, fetched once, however many processes the tests run in."""
    with (tmp_path_factory.getbasetemp().parent / "filesystem.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        why = "there is no npx, with which the filesystem server is fetched and run"
        if shutil.which(FILESYSTEM[0]) is not None:
            # Its folder is missing, so it ends immediately.
            done = subprocess.run([*FILESYSTEM, "/missing/folder"], capture_output=True, text=True, check=False)
            if "directories are accessible" in done.stderr or "ENOENT" in done.stderr:
                return
            why = f"npx cannot fetch the filesystem server:\n{done.stderr}"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)


@pytest.mark.long
@pytest.mark.usefixtures("filesystem")
def test_a_public_server_from_npm_over_stdio_from_import_to_call(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    command = [*FILESYSTEM, str(folder)]
    done = stubwright("import", "mcp", "--client", "--name", "files", "-o", "m.yaml", "--", *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("files "), done.stderr
    assert stubwright("check", "m.yaml", cwd=tmp_path).returncode == 0
    assert stubwright("generate", "m.yaml", cwd=tmp_path).returncode == 0

    async def call(package: Any) -> str:
        async with package.FilesClient.connect(command, drift="error") as client:
            content: str = (await client.read_text_file(path=str(folder / "a.txt"), head=1)).content
            return content

    with imported(tmp_path / "generated", "files_mcp") as package:
        assert anyio.run(call, package) == "one"


# --- a new project from a server -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", amounts.sample(sorted(path.name for path in CASES.iterdir()), 1))
def test_a_new_project_from_a_server_runs_at_once(name: str, mypy: list[str], tmp_path: Path) -> None:
    command = [sys.executable, SCRIPTED, str(CASES / name / "server.json")]
    done = stubwright("new", "mine", "--from", "mcp", "--", *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"{name} ")
    assert "The tools are in specs/imported/mine.yaml;" in done.stdout
    project = tmp_path / "mine"
    assert stubwright("generate", "--check", cwd=project).returncode == 0
    checked = stubwright("check", cwd=project).stderr
    assert "error" not in checked
    assert "SW411" not in checked
    path = [project, project / "generated"]
    tested = forked.python(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio"], project, path, **forked.ALONE
    )
    assert "1 passed" in tested.stdout, tested.stdout + tested.stderr
    typed = subprocess.run(
        [*mypy, str(project / "mine_server" / "handlers.py")],
        cwd=project,
        env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert typed.returncode == 0, typed.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--from", "nobody"], 2, "--from requires a kind (mcp, openapi, python) and one source"),
        (["--from", "openapi"], 2, "--from openapi requires a file"),
        (["--from", "openapi", "nothing.yaml"], 1, "error[SW001]: `nothing.yaml` does not exist"),
        (["--from", "openapi", "x.yaml", "--timeout", "3"], 2, "--header, --env and --timeout require --from mcp"),
        (["--include", "a"], 2, "options that select operations require --from openapi SOURCE"),
        (["--from", "mcp"], 2, "specify one server: a URL, or a command after `--`"),
        (["--header", "A: b"], 2, "--header, --env and --timeout require --from mcp"),
        (["--", "true"], 2, "unrecognized arguments: true"),
        (["--from", "mcp", "--", "no-such-program"], 1, "`no-such-program` cannot be started"),
    ],
)
def test_a_project_that_cannot_be_started_leaves_nothing(
    arguments: list[str], status: int, said: str, tmp_path: Path
) -> None:
    done = stubwright("new", "mine", *arguments, cwd=tmp_path)
    assert done.returncode == status
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


_NAMES = some.sampled_from(["a", "A", "a-b", "a_b", "aB", "read_a", "prompt_a", "around", "tasks", "é", "import"])
_URIS = some.sampled_from(["demo://a", "demo://A", "demo://a/b", "demo://a_b", "a:b", "demo://", "demo://a?x=1"])


def _listed(key: str, keys: some.SearchStrategy[str]) -> some.SearchStrategy[list[dict[str, str]]]:
    entry = some.fixed_dictionaries({"name": _NAMES, key: keys})
    return some.lists(entry, max_size=5, unique_by=lambda each: each[key])


@given(
    tools=some.lists(_NAMES, max_size=5, unique=True),
    resources=_listed("uri", _URIS),
    templates=_listed("uriTemplate", _URIS | some.sampled_from(["demo://{a}", "demo://a/{b}", "demo://{A}"])),
    prompts=_listed("name", _NAMES),
)
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_nothing_is_left_out_for_its_name(
    tools: list[str], resources: list[Any], templates: list[Any], prompts: list[Any]
) -> None:
    sections: dict[str, list[Any]] = {
        "tools": [{"name": name, "description": "Does.", "inputSchema": {"type": "object"}} for name in tools],
        "resources": resources,
        "resourceTemplates": templates,
        "prompts": prompts,
    }
    listing = ServerListing("2025-11-25", {"name": "demo", "version": "1"}, {}, sections)
    made = servers.make_manifest(listing, name=None, default_name="demo")
    assert [note for note in made.notes if "left out" in note] == []
    assert {name: len(made.manifest.get(name, ())) for name in sections} == {
        name: len(entries) for name, entries in sections.items()
    }
