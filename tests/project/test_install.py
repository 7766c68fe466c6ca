"""`stubwright install`: the configuration starts the server from any folder, without secrets in it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp
import pytest
from conftest import ROOT
from mcp import StdioServerParameters

import forked
from command_line import stubwright
from packages import manifest, tool
from processes import is_alive, start_process
from stubwright import cli
from stubwright.commands import install
from stubwright.serving import processes
from terminals import Terminal

HANDLERS = """
import asyncio, os, tokens
from diary_mcp import DiaryHandlers

class Diary(DiaryHandlers):
    async def ask(self, args, ctx):
        return f"{os.environ['TOKEN']} {tokens.KIND} {os.environ['CITY']}"
"""
MANIFEST = """\
stubwright: 1
server: {name: diary, version: 1.0.0}
python: {handlers: "diary:Diary"}
tools: [{name: ask, description: Asks., inputSchema: {type: object}}]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose package is generated."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["diary.yaml"]\n')
    (folder / "diary.yaml").write_text(MANIFEST)
    (folder / "src").mkdir()
    (folder / "src" / "diary.py").write_text(HANDLERS)
    (folder / "src" / "tokens.py").write_text("KIND = 'bearer'\n")
    done = stubwright("generate", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the project and a separate home."""
    for name in ("APPDATA", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return made


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def quick(folder: Path) -> list[str]:
    """Return options of `install` with the forking interpreter."""
    return ["--python", str(forked.interpreter_in(folder))]


def hostile(folder: Path) -> Path:
    """A working folder in which everything that the server imports seems to be, too."""
    folder.mkdir()
    for name in ("diary", "tokens", "mcp", "pydantic", "json", "diary_mcp"):
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    return folder


def test_the_entry_starts_the_server_from_any_folder(project: Path, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOKEN=from-file\nCITY='San José'\n")
    options = ["--env-file", str(tmp_path / ".env"), "--env", "TOKEN=s3cr3t"]
    done = stubwright("install", "cursor", *options, cwd=project / "src")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"note: {tmp_path / '.cursor'} does not exist yet; is Cursor installed?\n"
    assert "s3cr3t" not in done.stdout + done.stderr
    put = read(tmp_path / ".cursor" / "mcp.json")["mcpServers"]["diary"]
    assert put["command"] == sys.executable
    assert put["env"]["PYTHONPATH"].split(os.pathsep) == [str(project / one) for one in ("generated", ".", "src")]
    server = StdioServerParameters(
        command=put["command"], args=put["args"], env=put["env"], cwd=hostile(tmp_path / "hostile")
    )

    async def ask() -> list[str | None]:
        async with mcp.Client(server) as client:
            result = await client.call_tool("ask", {})
        return [getattr(block, "text", None) for block in result.content]

    assert asyncio.run(ask()) == ["s3cr3t bearer San José"]


def test_print_shows_all_and_writes_nothing(project: Path, tmp_path: Path) -> None:
    done = stubwright("install", "vscode", "--print", "--env", "TOKEN=s3cr3t", "--name", "mine", cwd=project)
    assert done.returncode == 0
    put = json.loads(done.stdout)["servers"]["mine"]
    assert put["type"] == "stdio"
    assert put["env"]["TOKEN"] == "s3cr3t"
    assert done.stderr == f"for {tmp_path / '.config/Code/User/mcp.json'}:\n"
    assert list(tmp_path.iterdir()) == []


def test_a_project_has_a_file_of_its_own(project: Path, tmp_path: Path) -> None:
    file = project / ".mcp.json"
    install = ["install", "claude-code", "--scope", "project"]
    done = stubwright(*install, "--env", "TOKEN=x", *quick(tmp_path), cwd=project / "src")
    assert done.returncode == 0
    assert "note: .mcp.json contains this machine's paths and the values of variables" in done.stderr
    assert "warning: the server cannot be started" not in done.stderr
    assert list(read(file)["mcpServers"]) == ["diary"]
    again = stubwright(*install, "--env", "TOKEN=x", *quick(tmp_path), cwd=project)
    assert again.stdout == f"Claude Code: `diary` is already in {file}\n"
    gone = stubwright(*install, "--remove", cwd=project)
    assert (gone.returncode, gone.stdout) == (0, f"Claude Code: `diary` was removed from {file}\n")
    assert read(file) == {"mcpServers": {}}
    twice = stubwright(*install, "--remove", cwd=project)
    assert (twice.returncode, twice.stderr) == (1, f"stubwright: {file} has no server `diary`\n")
    file.unlink()


def test_a_damaged_file_is_told_with_its_place_and_left(project: Path, tmp_path: Path) -> None:
    file = tmp_path / ".gemini" / "settings.json"
    file.parent.mkdir()
    file.write_text('{\n  "key": "hunter2" "theme": "x"\n}\n')
    for command in (["install", "gemini", *quick(tmp_path)], ["install", "gemini", "--remove"]):
        done = stubwright(*command, cwd=project)
        assert done.returncode == 1
        assert done.stderr.startswith(f"{file}:2:20: error[SW004]: expected a comma, or the end of the list or object")
        assert "hunter2" not in done.stderr
    assert file.read_text() == '{\n  "key": "hunter2" "theme": "x"\n}\n'


@pytest.mark.long
def test_runs_at_the_same_time_lose_nothing(project: Path, tmp_path: Path) -> None:
    names = [f"diary-{number}" for number in range(6)]
    python = str(forked.interpreter_in(tmp_path))
    install = f"cli.run(['install', 'claude', '--name', name, '--python', {python!r}]) for name in sys.argv[1:]"
    command = [*forked.interpreter(), "-c", f"import sys; from stubwright import cli; sys.exit(max({install}))"]
    options: Any = {"cwd": project, "env": {**os.environ, "HOME": str(tmp_path)}, "stdout": subprocess.DEVNULL}
    with (
        start_process([*command, *names[:3]], **options) as one,
        start_process([*command, *names[3:]], **options) as two,
    ):
        assert [one.wait(120), two.wait(120)] == [0, 0]
    put = read(tmp_path / ".config" / "Claude" / "claude_desktop_config.json")["mcpServers"]
    assert sorted(put) == names


def test_a_server_that_cannot_start_is_told(project: Path, tmp_path: Path) -> None:
    done = stubwright("install", "zed", "--handlers", "diary:Dairy", *quick(tmp_path), cwd=project)
    assert done.returncode == 0
    assert (
        "warning: the server cannot be started:\n"
        "diary_mcp: module 'diary' has no attribute 'Dairy'; did you mean 'Diary'?" in (done.stderr)
    )


@pytest.mark.long
def test_a_server_that_does_not_start_in_time_is_told(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "src" / "hanging.py").write_text(
        "import os, time\nopen('begun', 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"
    )
    monkeypatch.setattr(install, "_LIMIT", 6)
    monkeypatch.setattr(processes, "_SLOW", 1)
    monkeypatch.chdir(project)
    assert cli.run(["install", "zed", "--handlers", "hanging:Diary"]) == 0
    told = capsys.readouterr()
    assert "note: the server has not started after 1 s; waiting for up to 6 s\n" in told.err
    standing = f'File "{project}/src/hanging.py", line 3, in <module>\n    time.sleep(1000)\n'
    assert f"warning: the server has not started after 6 s; its handlers are at\n  {standing}" in told.err
    assert not is_alive(int((project / "begun").read_text()))


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["install"], 2, "no client is specified; the clients are `claude`, `claude-code`, `codex`, "),
        (["install", "emacs"], 2, "there is no client `emacs`; the clients are `claude`, "),
        (["install", "--list", "curser"], 2, "there is no client `curser`; did you mean `cursor`?"),
        (["install", "cursor", "--json"], 2, "--format requires --list"),
        (
            ["install", "claude", "--scope", "project"],
            2,
            "Claude Desktop has no project configuration; omit --scope",
        ),
        (["install", "claude", "--name", "a b"], 2, "`a b` is not a name that every client accepts: "),
        (["install", "claude", "--env", "A-B=hunter2"], 2, "--env: `A-B` is not a variable name"),
        (["install", "claude", "--env", "NOT_HERE"], 2, "--env NOT_HERE: the variable is not set"),
        (["install", "claude", "--print", "--remove"], 2, "--print and --remove cannot be combined"),
        (["install", "claude", "--python", "nowhere/python"], 2, "--python nowhere/python: file not found"),
        (
            ["install", "claude", "-o", "elsewhere"],
            2,
            "`elsewhere/diary_mcp` does not exist; run `stubwright generate` first",
        ),
        (
            ["install", "claude", "--env-file", "none.env"],
            1,
            "none.env:1:1: error[SW001]: the file cannot be read",
        ),
    ],
)
def test_what_cannot_be_done_is_told(argv: list[str], status: int, said: str, project: Path, tmp_path: Path) -> None:
    done = stubwright(*argv, cwd=project)
    assert done.returncode == status
    assert said in done.stderr
    assert "hunter2" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_line_of_a_file_of_variables_is_told_by_its_place(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "secrets.env"
    file.write_text("A=1\nhunter2\n")
    done = stubwright("install", "claude", "--env-file", str(file), cwd=project)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{file}:2:1: error[SW004]: this line is not `NAME=value`")
    assert "hunter2" not in done.stderr


def test_a_project_with_several_servers_needs_a_name(tmp_path: Path) -> None:
    done = stubwright("install", "claude", "--print", cwd=ROOT)
    assert done.returncode == 2
    named = ", ".join(
        f"specs/{name}.yaml" for name in ("database", "helpdesk", "shop", "weather", "everything/everything")
    )
    assert f"the project has 5 manifests; specify one: {named}" in done.stderr
    done = stubwright("install", "claude", "--print", "specs/weather.yaml", cwd=ROOT)
    assert list(json.loads(done.stdout)["mcpServers"]) == ["weather"]


def test_clients_are_listed(project: Path, tmp_path: Path) -> None:
    done = stubwright("install", "--list", cwd=project)
    assert done.returncode == 0
    assert f"cursor      Cursor          {tmp_path}/.cursor/mcp.json, .cursor/mcp.json\n" in done.stdout
    assert done.stdout.count("\n") == 8
    one = stubwright("install", "--list", "cursor", cwd=project)
    assert one.stdout == (
        f"Cursor: {tmp_path}/.cursor/mcp.json, .cursor/mcp.json\n  as in https://cursor.com/docs/mcp\n"
    )
    [client] = json.loads(stubwright("install", "--list", "cursor", "--json", cwd=project).stdout)
    assert (client["client"], client["user"]) == ("cursor", f"{tmp_path}/.cursor/mcp.json")
    assert (client["project"], client["sources"]) == (".cursor/mcp.json", ["https://cursor.com/docs/mcp"])


@pytest.mark.parametrize(("answer", "status"), [("n", 1), ("y", 0)])
def test_a_person_is_asked_before_a_folder_of_a_client_is_made(
    answer: str, status: int, project: Path, tmp_path: Path
) -> None:
    command = [*forked.interpreter(), "-m", "stubwright", "install", "cursor", *quick(tmp_path)]
    terminal = Terminal(command, project)
    terminal.until("is Cursor installed? Create the folder? [y/n]")
    terminal.type(f"{answer}\n")
    assert terminal.rest() == status
    assert (tmp_path / ".cursor").exists() == (status == 0)


def test_what_the_local_user_lacks_is_told_and_can_be_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bind = {"owner": {"claim": "sub", "local": {"env": "NOTES_OWNER"}}}
    policies = {"stubwright": {"policy": {"scopes": ["read", "write"]}, "bind": bind}}
    value = manifest([tool("add", {"owner": {"type": "string"}}, **policies)], python={"handlers": "notes:Notes"})
    value["auth"] = {"issuer": "https://auth.example.com", "audience": "https://notes.example.com"}
    monkeypatch.chdir(tmp_path)
    install = [
        "install",
        "vscode",
        "notes.json",
        "--scope",
        "project",
        "--python",
        str(forked.interpreter_in(tmp_path)),
    ]
    Path("notes.json").write_text(json.dumps(value))
    Path("notes.py").write_text("class Notes:\n    def add(self, args, ctx): return args.owner\n")
    assert cli.run(["generate", "notes.json"]) == 0
    capsys.readouterr()
    assert cli.run(install) == 0
    told = capsys.readouterr().err
    assert (
        "note: the local user lacks scopes that parts of the server need; grant them with "
        "--local-scope read --local-scope write\n" in told
    )
    assert "note: some tools take an argument from the environment; --env NOTES_OWNER sets it\n" in told
    granted = ["--local-scope", "read", "--local-scope", "write", "--env", "NOTES_OWNER=ann"]
    assert cli.run([*install, *granted]) == 0
    told = capsys.readouterr().err
    assert "scopes" not in told
    assert "NOTES_OWNER" not in told
    [entry] = json.loads(Path(".vscode/mcp.json").read_text())["servers"].values()
    assert entry["args"][-4:] == ["--scope", "read", "--scope", "write"]
