"""Packages that share a process and a runtime do not depend on each other or on their order."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

import forked
from packages import generate, imported, manifest, tool
from processes import start_process

PACKAGES = ["database_mcp", "everything_mcp", "helpdesk_mcp", "shop_mcp", "weather_mcp"]


@pytest.mark.long
def test_packages_are_the_same_in_every_order() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "support" / "import_orders.py"), *PACKAGES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("generated", "examples"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({tuple(order) for order, _, _ in rows}) == 120
    assert len({json.dumps(answer) for _, answer, _ in rows}) == 1
    assert [temperature for _, _, temperature in rows if temperature is not None] == [22.5] * 5


class Failing:
    async def one(self, args: Any, ctx: Any) -> str:
        raise RuntimeError("broken")

    async def two(self, args: Any, ctx: Any) -> str:
        from stubwright_runtime import ToolError

        raise ToolError("Not today.")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModuleType, ModuleType]]:
    folder = tmp_path_factory.mktemp("pair")
    for name in ("first", "second"):
        generate(folder, manifest([tool("one"), tool("two", {"count": {"type": "integer"}})], name=name))
    with imported(folder, "first_mcp") as first, imported(folder, "second_mcp") as second:
        yield first, second


@pytest.mark.anyio
async def test_one_package_catches_what_the_client_of_another_raises(pair: tuple[ModuleType, ModuleType]) -> None:
    first, second = pair
    assert first.OMIT is second.OMIT
    async with second.SecondClient.connect(second.build_server(Failing())) as client:
        with pytest.raises(first.ToolFailed, match=r"Not today\."):
            await client.two(count=first.OMIT)


@pytest.mark.anyio
async def test_each_package_has_a_log_of_its_own(
    pair: tuple[ModuleType, ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = pair
    one = first.FirstClient.connect(first.build_server(Failing(), audit=refuse))
    two = second.SecondClient.connect(second.build_server(Failing(), audit=refuse))
    async with one as client, two as other:
        for call in (other.one, client.one, other.one):
            with pytest.raises(first.ToolFailed, match="Internal error"):
                await call()
    names: dict[str, list[str]] = {name: [] for name in ("first_mcp", "second_mcp")}
    for record in caplog.records:
        if record.levelno >= logging.ERROR:
            names[record.name].append(record.getMessage())
    assert [
        len([text for text in texts if "Internal error" in text or ("one" in text and "failed" in text)])
        for texts in names.values()
    ] == [1, 2]
    assert all(any("audit hook failed" in text for text in texts) for texts in names.values()), "in threads, too"


def refuse(record: object) -> None:
    raise OSError("nothing can be recorded")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_no_line_of_a_server_is_named_after_the_runtime(transport: str, tmp_path: Path) -> None:
    generate(tmp_path, manifest([tool("one")], name="first", python={"handlers": "desk:Desk"}))
    (tmp_path / "desk.py").write_text("class Desk:\n    def one(self, args, ctx): return ''\n")
    options = ["--http", "127.0.0.1:0"] if transport == "http" else []
    with start_process(
        [*forked.interpreter(), "-m", "first_mcp", *options],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        if transport == "stdio":
            process.stdin.write("no message\n")
            process.stdin.flush()
        last = "startup complete" if transport == "http" else "refused a message"
        lines = [process.stderr.readline()]
        while last not in lines[-1] and lines[-1]:
            lines.append(process.stderr.readline())
        process.terminate()
        lines += process.stderr.readlines()
    assert " first_mcp: " in lines[0]
    assert "stubwright_runtime" not in "".join(lines)
