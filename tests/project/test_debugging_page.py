"""What docs/debugging.md says of tests, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import mcp
import mcp_types as types
import pytest

from packages import generate, imported, manifest, tool

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "debugging.md").read_text("utf-8")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_its_test_passes_in_a_project(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(# tests/test_weather\.py\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "test_weather.py").write_text(code)
    path = os.pathsep.join(map(str, (ROOT / "generated", ROOT / "examples")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_weather.py"]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


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
