"""The commands of `new`, its README, the tutorial, docs/ci.md and docs/deploy.md, run verbatim from wheels.

No index is used: third-party packages come from a folder of wheels without stubwright and its runtime. A command that
would fetch one of these by name fails.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT

import wheelhouse
import wheels
from processes import start_process
from walkthrough import Walkthrough

TYPED_CALL = """
import asyncio, sys
from lending_mcp import LendingClient

async def main():
    async with LendingClient.connect(sys.argv[1:]) as lending:
        print((await lending.roll_dice(sides=2)).total in (1, 2))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a shell on a fresh machine: a virtual environment with stubwright is active, from wheels."""
    import fcntl  # Windows lacks it, and runs other tests

    home = tmp_path_factory.mktemp("home")
    shared = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else home
    folder = shared / "machine"  # no test changes it, so that all processes of a run share it
    shell = {
        "PATH": f"{folder / 'venv' / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder / "house"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COMPILE": "0",  # no byte code, half of the time of an installation; pip reads "1" as that it is wanted
        "STUBWRIGHT_CACHE_DIR": str(home / "cache"),
    }
    with (shared / "machine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            set_up(folder, shell)
            (folder / "ready").touch()
    return shell


def set_up(folder: Path, shell: dict[str, str]) -> None:
    """Build the wheels of stubwright and of all that it needs, and install stubwright from them."""
    wheelhouse.build(folder / "house", "stubwright", "stubwright-runtime[all]", "pytest", "hatchling", "editables")
    built = [wheels.build(ROOT / "runtime", folder), wheels.build(ROOT, folder)]
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    say(shell, folder, f"pip install -q {' '.join(map(str, built))}")


@pytest.fixture(scope="module")
def made(machine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A new project, and what `new` printed."""
    folder = tmp_path_factory.mktemp("made")
    return folder / "lending", say(machine, folder, "stubwright new lending")


def say(shell: dict[str, str], folder: Path, command: str, **more: str) -> str:
    """Run a shell command that must succeed, and return its output."""
    done: subprocess.CompletedProcess[Any] = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env={**shell, **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return str(done.stdout)


def make_runner(shell: dict[str, str], folder: Path) -> str:
    """Create a CI runner with Python and pip, without stubwright and other packages; return its PATH.

    Installing another pip would take as long as all other packages.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    program = folder / "bin" / "pip"
    pip = shutil.which("pip", path=shell["PATH"])
    program.write_text(f'#!/bin/sh\nexec {pip} --python {folder / "bin" / "python"} "$@"\n')
    program.chmod(0o755)
    return f"{folder / 'bin'}:/usr/bin:/bin"


def blocks(text: str, language: str = "") -> list[str]:
    """Return the fenced blocks of a page that are in a language."""
    found = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [body for name, body in found if name == language]


def serves(shell: dict[str, str], folder: Path, command: str) -> None:
    """Run a command until it serves over HTTP, and stop it as Ctrl-C does."""
    free = command.replace("127.0.0.1:8000", "127.0.0.1:0")
    free += "" if "--http" in free else " --http 127.0.0.1:0"
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with start_process(["bash", "-c", f"exec {free}"], cwd=folder, env=shell, **pipes) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if re.search(r"http://127.0.0.1:\d+/mcp", line):
                break
        else:
            pytest.fail("".join(lines))
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(30) in (0, 130)


@pytest.mark.long
def test_what_new_prints_works_as_printed(machine: dict[str, str], made: tuple[Path, str]) -> None:
    project, printed = made
    commands = [line.partition("  #")[0].strip() for line in printed.splitlines() if line.startswith("  ")]
    assert commands[:2] == ["cd lending", "stubwright dev"]
    serves(machine, project, commands[1])
    *steps, on_stdio, over_http = commands[2:]
    assert "3 passed" in [say(machine, project, step) for step in steps][-1]
    assert say(machine, project, f"{on_stdio} < /dev/null") == ""
    serves(machine, project, over_http)
    (project / "call.py").write_text(TYPED_CALL)
    assert say(machine, project, f".venv/bin/python call.py {on_stdio}") == "True\n"
    (project / "call.py").unlink()
    install, container = blocks((project / "README.md").read_text("utf-8"))
    assert install.splitlines() == steps, "the README of a project has the commands that `new` prints"
    assert container.startswith("docker build")  # tests/servers/test_deploying.py runs the steps of its Dockerfile


@pytest.mark.long
def test_the_tutorial_works(machine: dict[str, str], mypy: list[str], tmp_path: Path) -> None:
    with Walkthrough(tmp_path, environment=machine) as walk:
        walk.play((ROOT / "docs" / "tutorial.md").read_text("utf-8"))
    environment = {**os.environ, "MYPYPATH": "generated"}
    command = [*mypy, "rooms_server/handlers.py", "tests/test_tools.py"]
    typed = subprocess.run(command, cwd=walk.folder, env=environment, capture_output=True, text=True, check=False)
    assert typed.returncode == 0, typed.stdout + typed.stderr


@pytest.mark.long
def test_docs_ci_works(machine: dict[str, str], made: tuple[Path, str], tmp_path: Path) -> None:
    project = tmp_path / "lending"
    shutil.copytree(made[0], project, ignore=shutil.ignore_patterns(".venv", ".pytest_cache"))
    text = (ROOT / "docs" / "ci.md").read_text("utf-8")
    hooks, workflow, commenting, contracts = (yaml.safe_load(block) for block in blocks(text, "yaml"))
    action = commenting["jobs"]["manifests"]["steps"][-1]
    file = ROOT / action["uses"].removeprefix("OWNER/stubwright/").partition("@")[0] / "action.yml"
    assert action["with"].keys() <= yaml.safe_load(file.read_text("utf-8"))["inputs"].keys()
    [shell] = blocks(text)
    say(machine, project, shell)
    path = make_runner(machine, tmp_path / "runner")
    steps = [step["run"] for step in workflow["jobs"]["manifests"]["steps"] if "run" in step]
    assert len(steps) == 3
    for step in [*steps, *(hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"])]:
        say(machine, project, step, PATH=path)
    (project / "generated" / "lending_mcp" / "client.py").unlink()
    with pytest.raises(AssertionError, match=r"::error file=generated/lending_mcp/client\.py"):
        say(machine, project, steps[-1], PATH=path)
    [manifest] = (project / "specs").glob("*.yaml")
    say(machine, project, f"stubwright lock -- stubwright mock specs/{manifest.name}", PATH=path)
    path = make_runner(machine, tmp_path / "light")  # another machine, which compiles nothing
    for step in (verifying := [step["run"] for step in contracts["jobs"]["contracts"]["steps"] if "run" in step]):
        assert "::" not in say(machine, project, step, PATH=path)
    manifest.write_text(manifest.read_text("utf-8").replace("name: roll_dice", "name: throw_dice"), "utf-8")
    with pytest.raises(AssertionError, match=r"::error file=contracts/[a-z-]+\.yaml,.*`roll_dice`"):
        say(machine, project, verifying[-1], PATH=path)
    manifest.unlink()  # the server does not start: it is asked once more, and the status stays
    with pytest.raises(AssertionError, match=r"(?s)title=not verified::.*slept 60\n.*title=not verified::"):
        say(machine, project, f"sleep() {{ echo slept $1; }}; {verifying[-1]}", PATH=path)


@pytest.mark.long
def test_docs_deploy_without_an_index_works(machine: dict[str, str], made: tuple[Path, str], tmp_path: Path) -> None:
    project = tmp_path / "lending"
    shutil.copytree(made[0], project, ignore=shutil.ignore_patterns(".venv"))
    text = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    section = text[text.index("### Without a package index") : text.index("## With Compose")]
    [download] = blocks(section)
    say(machine, project, download)
    dockerfile = (project / "Dockerfile").read_text("utf-8")
    build, install = re.findall(r"^RUN python -m pip (.*)$", dockerfile, re.MULTILINE)
    site = f"{tmp_path}/server"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", site], check=True)
    for line in (build, install):
        words = line.replace("wheel --no", "wheel --no-index --find-links /wheels --no")
        words = words.replace("install --no", "install --no-index --no").replace("/opt/server", site)
        words = re.sub(r"(?<![\w/])/(wheels|dist)\b", rf"{project}/\1", words)
        say(machine, project, f"python -m pip {words}", PIP_FIND_LINKS="")
    assert say(machine, project, f"{site}/bin/lending-mcp --version") == "lending 0.1.0\n"


@pytest.mark.long
def test_the_wheels_that_are_packed_are_those_that_are_built(machine: dict[str, str], tmp_path: Path) -> None:
    printed = say(machine, tmp_path, "stubwright wheels")
    packed = {Path(line).name: tmp_path / line for line in printed.splitlines()}
    built = {path.name: path for path in (wheels.build(ROOT / "runtime", tmp_path), wheels.build(ROOT, tmp_path))}
    assert packed.keys() == built.keys()
    for name, path in packed.items():
        with zipfile.ZipFile(path) as ours, zipfile.ZipFile(built[name]) as theirs:
            changed = {each for each in theirs.namelist() if each.endswith(("/RECORD", "/WHEEL"))}
            assert {*ours.namelist()} == {*theirs.namelist()}
            assert all(ours.read(each) == theirs.read(each) for each in {*ours.namelist()} - changed)


@pytest.mark.long
def test_a_project_for_an_index_brings_no_wheel(machine: dict[str, str], tmp_path: Path) -> None:
    printed = say(machine, tmp_path, "stubwright new lending --from-index")
    assert "pip install -e . pytest" in printed
    assert not (tmp_path / "lending" / "wheels").exists()
    words = "".join(
        (tmp_path / "lending" / name).read_text("utf-8")
        for name in ("README.md", "Dockerfile", "pyproject.toml", ".dockerignore")
    )
    assert "wheels" not in words.replace("/dist/*.whl", "")
    assert '"stubwright-runtime[redis]"' in words


NAMED = re.compile(
    r"(pip|uv|pipx|uvx)\b[^\n|`]*\b(install|add|download|tool|run|x)\b[^\n|`]*(?<![\w/.-])stubwright(-runtime)?\b(?!_|/)"
)


def test_nothing_tells_anybody_to_fetch_stubwright_by_name() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wrong = [
        f"{name}: {match[0]}"
        for name in listed.split("\0")
        if name.endswith((".md", ".jinja", ".py", ".yaml", ".yml", ".toml", "Dockerfile"))
        and not name.startswith("tests/")
        for match in NAMED.finditer((ROOT / name).read_text("utf-8"))
    ]
    assert [each for each in wrong if not each.startswith("templates/new/Dockerfile.jinja: ")] == []  # of --from-index
