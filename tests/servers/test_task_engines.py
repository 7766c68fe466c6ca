"""Task engines of users: custom engines, and the examples with a real PostgreSQL and a real Redis."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest
from conftest import ROOT

import postgres_server
from packages import generate, manifest, tool
from server_process import Process
from task_calls import asked, begun, wait_for_end

ENGINES = ROOT / "examples" / "engines"

pytestmark = pytest.mark.anyio

SECONDS = {"seconds": {"type": "number"}, "number": {"type": "integer"}}
TASK = {"execution": {"taskSupport": "optional"}, "annotations": {"idempotentHint": True}}
MANIFEST = manifest([tool("again", SECONDS, **TASK, stubwright={"task": {"lease": "1s"}})], name="process")

HANDLERS = """
import asyncio, os

class Work:
    async def again(self, args, ctx):
        with open("log", "a") as log:
            log.write(f"{args.number} {os.getpid()} {ctx.attempt}\\n")
        await asyncio.sleep(args.seconds)
        return f"did {args.number}"
"""

ENGINE = """
import asyncio
from contextlib import asynccontextmanager

class Queue:
    def __init__(self, server):
        self.server, self.ids, self.stopped = server, asyncio.Queue(), False

    async def submit(self, task):
        if self.server == "away":
            raise ConnectionError("the queue is unreachable")
        print("submitted for", self.server, flush=True)
        await self.ids.put(task)

    def stop(self):
        self.stopped = True

    @asynccontextmanager
    async def run(self, work, grace):
        async def serve():
            while not self.stopped:
                task = await self.ids.get()
                if not await work(task):
                    await self.ids.put(task)
        serving = asyncio.create_task(serve())
        yield
        serving.cancel()

def away(server):
    return Queue("away")

class Half:
    def __init__(self, server): ...
    async def submit(self, task): ...

def broken(server):
    raise OSError("no such queue")

number = 7
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    generate(folder, MANIFEST)
    (folder / "work.py").write_text(HANDLERS)
    (folder / "queues.py").write_text(ENGINE)
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Process]]:
    with ExitStack() as ending:

        def started(*options: str, python: Sequence[str] = ()) -> Process:
            process = Process(project, *options, "--handlers", "work:Work", python=python)
            ending.callback(process.kill)
            return process

        yield started


def runs(project: Path) -> list[list[str]]:
    log = project / "log"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


async def test_an_engine_of_the_user_runs_a_task(start: Callable[..., Process], project: Path, redis_url: str) -> None:
    process = start("--http", "127.0.0.1:0", "--state", redis_url, "--tasks", "queues:Queue")
    url = process.url()
    async with httpx2.AsyncClient(timeout=60) as http:
        task = await wait_for_end(http, url, await begun(http, url, "again", 1, 0.0))
    assert task["result"]["content"] == [{"type": "text", "text": "did 1"}]
    assert [(number, attempt) for number, _, attempt in runs(project)] == [("1", "1")]
    process.popen.send_signal(signal.SIGTERM)
    status, log, _ = process.end()
    assert status == 0, log


async def test_a_task_that_no_engine_takes_is_refused(start: Callable[..., Process], redis_url: str) -> None:
    process = start("--http", "127.0.0.1:0", "--state", redis_url, "--tasks", "queues:away")
    url = process.url()
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await asked(http, url, "tools/call", name="again", arguments={"number": 1, "seconds": 0})
    assert "the request may have taken effect" in answer["result"]["content"][0]["text"]
    process.await_log("the task engine did not accept a task: ConnectionError: the queue is unreachable")


def test_an_engine_needs_a_store_that_processes_share(start: Callable[..., Process], project: Path) -> None:
    process = start("--tasks", "queues:Queue")
    process.close()
    status, log, _ = process.end()
    expected = "--state: a task engine requires a shared store"
    assert (status, expected in log, "Traceback" in log) == (2, True, False), log


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("queues", "--tasks must be MODULE:NAME, such as engines:Queue, not 'queues'"),
        ("missing:Queue", "no module 'missing'"),
        ("queues:Queu", "module 'queues' has no attribute 'Queu'; did you mean 'Queue'?"),
        ("queues:number", "--tasks must be a class or function that returns a task engine; 'queues:number' is neither"),
        ("queues:Half", "--tasks: queues:Half does not return a task engine; the object lacks run, stop"),
        ("queues:broken", "--tasks: cannot call queues:broken with the server's name: OSError: no such queue"),
    ],
)
def test_a_path_that_leads_to_no_engine_is_refused(
    path: str, expected: str, start: Callable[..., Process], redis_url: str
) -> None:
    process = start("--state", redis_url, "--tasks", path)
    process.close()
    status, log, _ = process.end()
    assert (status, expected in log, "Traceback" in log) == (2, True, False), log


def prepare_queue(package: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, ending: ExitStack) -> None:
    """Start the queue of an example, and set the environment variables that its engine reads."""
    monkeypatch.setenv("PYTHONPATH", str(ENGINES), prepend=os.pathsep)
    if package == "celery":
        monkeypatch.setenv("CELERY_BROKER_URL", redis_url.partition("?")[0])
        return
    for variable, value in ending.enter_context(postgres_server.run_postgres()).items():
        monkeypatch.setenv(variable, value)
    schema = ["procrastinate", "--app", "procrastinate_engine.app", "schema", "--apply"]
    subprocess.run([sys.executable, "-m", *schema], check=True, cwd=ENGINES, capture_output=True)


@pytest.mark.long
@pytest.mark.parametrize("package", ["celery", "procrastinate"])
async def test_a_queue_loses_no_task_of_a_process_that_dies(
    package: str,
    start: Callable[..., Process],
    project: Path,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"the package {package} is not installed")
    with ExitStack() as ending:
        prepare_queue(package, redis_url, monkeypatch, ending)
        options = ("--state", redis_url, "--tasks", f"{package}_engine:Engine", "--grace", "2")
        first, second = (start("--http", "127.0.0.1:0", *options, python=[sys.executable]) for _ in range(2))
        url = first.url()
        other = second.url()
        pids = {str(process.popen.pid): process for process in (first, second)}
        urls = {first: url, second: other}
        async with httpx2.AsyncClient(timeout=60) as http:
            quick = [await begun(http, url, "again", number, 0.01) for number in range(20)]
            for number, task in enumerate(quick):
                content = (await wait_for_end(http, url, task))["result"]["content"]
                assert content == [{"type": "text", "text": f"did {number}"}]
            slow = await begun(http, url, "again", 100, 8.0)
            # Only the log is read: asking for the task would have the server submit it again.
            pid = (await await_runs(project, "100", 1))[0]
            killed = pids.pop(pid)
            killed.popen.send_signal(signal.SIGKILL)
            [survivor] = pids.values()
            assert await await_runs(project, "100", 2) == [pid, str(survivor.popen.pid)]
            content = (await wait_for_end(http, urls[survivor], slow))["result"]["content"]
            assert content == [{"type": "text", "text": "did 100"}]
            handed = await begun(http, urls[survivor], "again", 200, 6.0)
            await await_runs(project, "200", 1)
            survivor.popen.send_signal(signal.SIGTERM)
            status, log, _ = await asyncio.to_thread(survivor.end)
            assert status == 0, log
            third = start("--http", "127.0.0.1:0", *options, python=[sys.executable])
            url = third.url()
            assert len(await await_runs(project, "200", 2)) == 2
            assert (await wait_for_end(http, url, handed))["status"] == "completed"
            third.popen.send_signal(signal.SIGTERM)
            assert (await asyncio.to_thread(third.end))[0] == 0
    assert Counter(number for number, *_ in runs(project)) == {
        **{str(number): 1 for number in range(20)},
        "100": 2,
        "200": 2,
    }


async def await_runs(project: Path, number: str, count: int) -> list[str]:
    """Return the processes that ran a task, once it was run so many times."""
    end = time.monotonic() + 90
    while len(pids := [run[1] for run in runs(project) if run[0] == number]) < count:
        assert time.monotonic() < end, runs(project)
        await asyncio.sleep(0.1)
    return pids
