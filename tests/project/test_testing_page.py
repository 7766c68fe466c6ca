"""The server and the tests in docs/testing.md, run verbatim."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import mcp
import mcp_types as types
import pytest

import forked
from command_line import stubwright
from packages import generate, imported, manifest, tool

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "testing.md").read_text("utf-8")
FILES: Final = re.findall(r"^```(?:yaml|python)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bistro")
    for name, text in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for command in (["check", "--strict"], ["generate", "-o", "generated"]):
        run = stubwright(*command, "specs/bistro.yaml", cwd=folder)
        assert run.returncode == 0, run.stderr
    return folder


def run_pytest(project: Path, *arguments: str, **variables: str) -> str:
    """Run tests of the project; return what pytest prints."""
    quiet = "ignore::pytest.PytestAssertRewriteWarning"  # of modules that a forked interpreter has loaded before
    command = ["-m", "pytest", "-p", "no:cacheprovider", "-W", quiet, *arguments]
    run = forked.python(command, project, [Path("generated"), Path()], **variables)
    return run.stdout + run.stderr


def test_each_block_of_code_is_a_file() -> None:
    assert len(FILES) == len(re.findall(r"^```(?:yaml|python)$", PAGE, re.MULTILINE))


@pytest.mark.long
def test_its_tests_pass(project: Path) -> None:
    assert "1 passed" in run_pytest(project, "tests/test_golden.py", UPDATE="1")
    output = run_pytest(project, "tests", "-rA")
    assert re.search(r"^=+ \d+ passed in \S+ =+$", output, re.MULTILINE), output
    assert all(f"PASSED {name}::" in output for name, _ in FILES if "/test_" in name), output


@pytest.mark.long
def test_its_examples_pass(project: Path) -> None:
    [command] = re.findall(r"^\$ pytest (\S+)$", PAGE, re.MULTILINE)
    assert "1 passed" in run_pytest(project, command)


@pytest.mark.long
def test_its_code_is_typed(project: Path, mypy: list[str]) -> None:
    names = [name for name, _ in FILES if name.endswith(".py")]
    environment = {**os.environ, "MYPYPATH": "generated"}
    run = subprocess.run([*mypy, *names], cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


async def test_progress_and_logs_come_as_it_says(tmp_path: Path) -> None:
    class Handlers:
        async def work(self, args: Any, ctx: Any) -> str:
            del args
            await ctx.progress(3, 10, "third of ten")
            await ctx.log("info", {"step": 3})
            return ",".join(ctx.principal.scopes)

    told: list[tuple[float, float | None, str | None]] = []
    logged: list[Any] = []

    async def show(params: types.LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    with imported(tmp_path, generate(tmp_path, manifest([tool("work")]))) as package:
        server = package.build_server(Handlers(), local_scopes=["stations:write"])
        async with package.SampleClient.connect(server, on_progress=lambda *words: told.append(words)) as client:
            assert (await client.work())[0].text == "stations:write"
        assert told == [(3.0, 10.0, "third of ten")]
        listening = mcp.Client(server, mode="legacy", logging_callback=show)
        async with package.SampleClient.connect(listening) as client:
            await client.work()
    assert logged == [{"step": 3}]
