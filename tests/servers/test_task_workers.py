"""Tasks in Redis: executed by many processes, some of which die."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest
import redis.asyncio

import amounts
import redis_server
from packages import generate, manifest, tool
from processes import is_alive
from server_process import Process
from stubwright_runtime.server.worker import Workers
from stubwright_runtime.state.stores import store_at
from stubwright_runtime.tasks.engines.redis import StreamEngine
from stubwright_runtime.tasks.runs import MAX_DEATHS
from task_calls import asked, begun, wait_for_end

if TYPE_CHECKING:
    from stubwright_runtime.package import Package

pytestmark = pytest.mark.anyio

NUMBER = int(os.environ.get("STUBWRIGHT_WHOLE_TASKS", "200"))
DEATHS = NUMBER // 50
"""Tasks, and workers that are killed while these run."""

SECONDS = {"seconds": {"type": "number"}, "number": {"type": "integer"}}
TASK = {"execution": {"taskSupport": "optional"}}
MANIFEST = manifest(
    [
        tool("again", SECONDS, annotations={"idempotentHint": True}, **TASK, stubwright={"task": {"most": 10000}}),
        tool("once", SECONDS, **TASK, stubwright={"task": {"most": 10000}}),
        tool("block", SECONDS, **TASK),
        tool("fatal", SECONDS, annotations={"idempotentHint": True}, **TASK, stubwright={"task": {"lease": "1s"}}),
        tool("stall", SECONDS, **TASK, stubwright={"task": {"lease": "2s"}}),
    ],
    name="process",
)

HANDLERS = """
import asyncio, os, time

def note(kind, args):
    with open("log", "a") as log:
        log.write(f"{kind} {args.number} {os.getpid()}\\n")

class Work:
    async def again(self, args, ctx):
        note("again", args)
        await asyncio.sleep(args.seconds)
        return f"did {args.number}"

    async def once(self, args, ctx):
        note("once", args)
        await asyncio.sleep(args.seconds)
        return f"did {args.number}"

    async def fatal(self, args, ctx):
        with open("keys", "a") as keys:
            keys.write(ctx.idempotency_key("pay") + "\\n")
        if not os.path.exists("mended"):
            os.kill(os.getpid(), 9)
        return f"did {args.number} at last"

    def block(self, args, ctx):
        note("block", args)
        time.sleep(args.seconds)
        return f"did {args.number}"

    async def stall(self, args, ctx):
        note("stall", args)
        time.sleep(args.seconds)
        return f"did {args.number}"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    generate(folder, MANIFEST)
    (folder / "work.py").write_text(HANDLERS)
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Process]]:
    with ExitStack() as ending:

        def started(state: str, *options: str) -> Process:
            process = Process(project, *options, "--handlers", "work:Work", "--state", state)
            ending.callback(process.kill)
            return process

        yield started


def served(start: Callable[..., Process], state: str, *options: str) -> tuple[Process, str]:
    process = start(state, "--http", "127.0.0.1:0", *options)
    return process, process.url()


def worker(start: Callable[..., Process], state: str) -> Process:
    process = start(state, "worker")
    process.await_log("running tasks for")
    process.drain()
    return process


def runs(project: Path) -> Counter[str]:
    log = project / "log"
    return Counter(" ".join(line.split()[:2]) for line in log.read_text().splitlines()) if log.exists() else Counter()


@pytest.mark.long
async def test_workers_that_die_lose_no_task(project: Path, start: Callable[..., Process], redis_url: str) -> None:
    chance = random.Random(1)
    servers = []
    for _ in range(2):
        process, url = served(start, redis_url, "--workers", "0")
        process.drain()
        servers.append(url)
    workers = [worker(start, redis_url) for _ in range(3)]

    async def kill() -> None:
        for _ in range(DEATHS):
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            victim = workers.pop(chance.randrange(len(workers)))
            victim.popen.send_signal(signal.SIGKILL)
            workers.append(await asyncio.to_thread(worker, start, redis_url))

    async with httpx2.AsyncClient(timeout=60) as http:
        killing = asyncio.create_task(kill())
        places = asyncio.Semaphore(16)

        async def one(number: int) -> tuple[str, dict[str, Any] | None]:
            kind = chance.choice(["again", "once"])
            await asyncio.sleep(chance.uniform(0, DEATHS))
            async with places:
                try:
                    task = await begun(http, chance.choice(servers), kind, number, chance.uniform(0.005, 1.0))
                except httpx2.TransportError:
                    return f"{kind} {number}", None
            await asyncio.sleep(2)
            async with places:
                return f"{kind} {number}", await wait_for_end(http, chance.choice(servers), task)

        results = dict(await asyncio.gather(*(one(number) for number in range(NUMBER))))
        await killing
    counts = runs(project)
    assert len(results) == NUMBER
    given_up, lost = 0, sum(said is None for said in results.values())
    assert lost <= NUMBER // 100, "calls whose connection broke: whether their tasks began is unknown"
    for name, said in results.items():
        kind, number = name.split()
        assert kind == "again" or counts[name] <= 1
        if said is None:
            continue
        if said["status"] == "completed":
            assert said["result"]["content"] == [{"type": "text", "text": f"did {number}"}]
        else:
            assert said["status"] == "failed"
            assert "died" in said["error"]["message"]
            given_up += kind == "again"
        assert counts[name] >= (said["status"] == "completed"), "who died before the handler began has run nothing"
    assert given_up <= NUMBER // 100, f"tasks that met {MAX_DEATHS} deaths"
    assert any(said and said["status"] == "failed" for said in results.values()), "nobody died at work"


@pytest.mark.long
async def test_workers_beside_a_server_are_started_anew_and_end_with_it(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    process, url = served(start, redis_url, "--workers", "2", "--grace", "1")
    async with httpx2.AsyncClient(timeout=60) as http:
        tasks = [await begun(http, url, "again", number, 0.3) for number in range(8)]
        for task in tasks:
            assert (await wait_for_end(http, url, task))["status"] == "completed"
        [first, *_] = pids = {int(line.split()[2]) for line in (project / "log").read_text().splitlines()}
        assert process.popen.pid not in pids
        said = command_line(first)
        assert said[said.index(b"--grace") + 1] == b"1", "it stops as its server does"
        os.kill(first, signal.SIGKILL)
        process.await_log("running tasks for")
        task = await begun(http, url, "again", 9, 0.0)
        assert (await wait_for_end(http, url, task))["status"] == "completed"
    process.popen.send_signal(signal.SIGTERM)
    assert (await asyncio.to_thread(process.end))[0] == 0
    for pid in pids:
        await gone(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_worker_beside_a_server_ends_without_a_word(
    number: signal.Signals, project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    worker = start(redis_url, "worker", "--until-end-of-input", "--grace", "1")
    worker.await_log("running tasks for")
    worker.popen.send_signal(number)
    status, log, _ = await asyncio.to_thread(worker.end)
    assert (status, log.count("\n")) == (0, 1), log


@pytest.mark.long
async def test_workers_that_are_stopped_with_their_server_end_well(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    for _ in range(1 + NUMBER // 250):
        process = start(redis_url, "--http", "127.0.0.1:0", "--workers", "2", "--grace", "1")
        process.await_log("running tasks for")
        process.await_log("running tasks for")
        process.popen.send_signal(signal.SIGHUP)
        status, log, _ = await asyncio.to_thread(process.end)
        assert (status, log.count("draining: starting no new tasks"), "exited with status" in log) == (0, 2, False), log


async def test_a_thread_does_not_hold_up_a_worker(project: Path, start: Callable[..., Process], redis_url: str) -> None:
    _, url = served(start, redis_url, "--workers", "0")
    first = start(redis_url, "worker", "--grace", "0")
    first.await_log("running tasks for")
    async with httpx2.AsyncClient(timeout=60) as http:
        await begun(http, url, "block", 1, 60.0)
        await until(lambda: sum(runs(project).values()) == 1)
        first.popen.send_signal(signal.SIGTERM)
        assert (await asyncio.to_thread(first.end))[0] == 0


async def test_a_task_that_blocks_its_process_is_not_run_by_another(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    _, url = served(start, redis_url, "--workers", "0")
    for _ in range(2):
        worker(start, redis_url)
    async with httpx2.AsyncClient(timeout=60) as http:
        task = await begun(http, url, "stall", 1, 5.0)  # longer than its lease, and than its id stays with one process
        assert (await wait_for_end(http, url, task))["status"] == "completed"
    assert runs(project) == {"stall 1": 1}


async def test_a_lost_cancellation_does_not_hold_up_a_stop(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async def read(*_: object, **__: object) -> dict[bytes, Any]:
        """Redis' response that the key does not exist, which loses a cancellation."""
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.1)
        return {}

    async def work(_task: str) -> bool:
        return True

    monkeypatch.setattr(redis.asyncio.Redis, "xreadgroup", read)
    store = store_at(redis_url, cast("Package", SimpleNamespace(name="p_mcp", manifest={"server": {"name": "p"}})))
    engine = StreamEngine(store)
    async with asyncio.timeout(60):
        async with engine.run(work, 5.0):
            await asked.wait()


async def test_a_worker_that_does_not_end_is_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "deaf.py").write_text(
        "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nopen('up', 'w')\ntime.sleep(60)"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        with Workers(1, ["deaf.py"], -4.8):
            await until((tmp_path / "up").exists)
    assert "did not exit within 0 s; killing it" in caplog.text


async def test_workers_do_not_outlive_a_server_that_is_killed(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    process, url = served(start, redis_url, "--workers", "1")
    async with httpx2.AsyncClient(timeout=60) as http:
        assert (await wait_for_end(http, url, await begun(http, url, "again", 1, 0.0)))["status"] == "completed"
    pid = int((project / "log").read_text().split()[2])
    process.popen.kill()
    await gone(pid)


def command_line(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


async def gone(pid: int) -> None:
    await until(lambda: not is_alive(pid))


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_so():
            return
        await asyncio.sleep(0.02)
    assert is_so()


@pytest.mark.long
async def test_a_worker_that_is_asked_to_stop_ends_its_task_or_hands_it_back(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    _, url = served(start, redis_url, "--workers", "0")
    first = start(redis_url, "worker", "--grace", "1")
    first.await_log("running tasks for")
    async with httpx2.AsyncClient(timeout=60) as http:
        short, long, fragile = (
            await begun(http, url, "once", 1, 0.2),
            await begun(http, url, "again", 2, 3.0),
            await begun(http, url, "once", 3, 30.0),
        )
        await until(lambda: sum(runs(project).values()) == 3)
        first.popen.send_signal(signal.SIGTERM)
        worker(start, redis_url)
        after = await begun(http, url, "once", 4, 0.0)
        assert (await wait_for_end(http, url, after))["status"] == "completed"
        assert (await asyncio.to_thread(first.end))[0] == 0
        assert (await wait_for_end(http, url, short))["result"]["content"][0]["text"] == "did 1"
        assert (await wait_for_end(http, url, long))["result"]["content"][0]["text"] == "did 2"
        said = await wait_for_end(http, url, fragile)
        assert (
            said["error"]["message"] == "The server stopped while the task was running; its effects so far may persist"
        )
    assert runs(project) == {"once 1": 1, "again 2": 2, "once 3": 1, "once 4": 1}


async def test_each_of_many_tasks_is_handed_back_at_a_stop(redis_url: str) -> None:
    store = store_at(redis_url, cast("Package", SimpleNamespace(name="p_mcp", manifest={"server": {"name": "p"}})))
    begun, handed_back = set[str](), set[str]()

    async def work(task: str) -> bool:
        begun.add(task)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1 * int(task))  # one takes longer than another
            handed_back.add(task)
            raise
        return True

    engine = StreamEngine(store)
    async with engine.run(work, 0.01):
        for number in range(5):
            await engine.submit(f"{number:016}")
        await until(lambda: len(begun) == 5)
    assert handed_back == begun


@pytest.mark.long
async def test_tasks_outlive_redis(project: Path, start: Callable[..., Process], tmp_path_factory: Any) -> None:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with redis_server.run_redis(tmp_path_factory.mktemp("redis"), *options) as server:
        _, url = served(start, server.url)
        async with httpx2.AsyncClient(timeout=60) as http:
            tasks = [await begun(http, url, "once", number, 0.5) for number in range(5)]
            server.stop(kill=True)
            lost = "store cannot be reached; "
            read = await asked(http, url, "tasks/get", taskId=tasks[0])
            assert f"{lost}the request had no effect" in read["error"]["message"]
            said = await asked(http, url, "tools/call", name="once", arguments={"number": 9, "seconds": 0})
            # Another connection may still fail: it is unknown whether its write was executed.
            assert re.search(f"{lost}(the request had no effect|it is unknown)", said["result"]["content"][0]["text"])
            await asyncio.sleep(0.6)
            server.start()
            for number, task in enumerate(tasks):
                said = await wait_for_end(http, url, task)
                assert said["status"] == "completed", said
                assert said["result"]["content"][0]["text"] == f"did {number}"
            assert (await wait_for_end(http, url, await begun(http, url, "again", 7, 0.0)))["status"] == "completed"
    assert max(runs(project).values()) == 1


async def test_what_others_write_among_the_tasks_is_dropped(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    _, url = served(start, redis_url)
    base, prefix = redis_url.split("?prefix=")
    async with redis.asyncio.Redis.from_url(base) as client, httpx2.AsyncClient(timeout=60) as http:
        for data in (b"", b"null", pickle.dumps(Evil()), b"x" * 100_000, b"A" * 32):
            await client.xadd(f"{prefix}:tasks", {b"data": data})
        await client.xadd(f"{prefix}:tasks", {b"other": b"x"})
        assert (await wait_for_end(http, url, await begun(http, url, "again", 1, 0.0)))["status"] == "completed"
        for _ in range(100):
            if not await client.xlen(f"{prefix}:tasks"):
                break
            await asyncio.sleep(0.05)
        assert await client.xlen(f"{prefix}:tasks") == 0
    assert not (project / "owned").exists()


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch owned",)


async def test_arguments_and_results_cannot_be_read_in_redis(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    _, url = served(start, redis_url)
    base, prefix = redis_url.split("?prefix=")
    async with redis.asyncio.Redis.from_url(base) as client, httpx2.AsyncClient(timeout=60) as http:
        task = await begun(http, url, "again", 424242, 0.0)
        assert (await wait_for_end(http, url, task))["status"] == "completed"
        names: list[Any] = await client.keys(f"{prefix}:*")
        dumps: list[Any] = [await client.dump(name) for name in names]
        everything = b"".join([*names, *(dump or b"" for dump in dumps)])
    assert b":task:" in everything
    for word in (b"424242", b"did", b"anonymous", task.encode()):
        assert word not in everything


async def test_a_task_is_cancelled_where_it_runs(project: Path, start: Callable[..., Process], redis_url: str) -> None:
    _, url = served(start, redis_url, "--workers", "0")
    worker(start, redis_url)
    async with httpx2.AsyncClient(timeout=60) as http:
        tasks = [await begun(http, url, kind, number, 2.0) for number, kind in enumerate(["again", "block"])]
        await until(lambda: sum(runs(project).values()) == 2)
        for task in tasks:
            assert (await asked(http, url, "tasks/cancel", taskId=task))["result"]["resultType"] == "complete"
            said = await wait_for_end(http, url, task)
            assert (said["status"], "result" in said) == ("cancelled", False)
        await asyncio.sleep(2.2)
        for task in tasks:
            assert (await wait_for_end(http, url, task))["status"] == "cancelled"


@pytest.mark.parametrize(
    ("arguments", "told"),
    amounts.sample(
        [
            (("worker",), "a worker runs tasks that other processes created; set --state redis://HOST:PORT"),
            (
                ("--workers", "2"),
                "--workers requires a store that other processes can use; set --state redis://HOST:PORT",
            ),
            (("tasks",), "the tasks command lists other processes' tasks; add --state redis://HOST:PORT"),
            (("--run-again", "x"), "--run-again works only with the tasks command"),
            (("worker", "--http", ":0"), "a worker does not accept requests; remove --http and --workers"),
            (("--workers", "two"), "'two' is not a whole number; expected one such as 4"),
            (("--state", "redis:/x"), "--state: a string without a URL scheme is not supported for state"),
        ],
        2,
    ),
)
def test_mistakes_are_told(arguments: tuple[str, ...], told: str, project: Path) -> None:
    process = Process(project, *arguments, "--handlers", "work:Work")
    process.close()
    status, log, _ = process.end()
    assert (status, told in log, "Traceback" in log) == (2, True, False), log


async def test_a_task_that_was_given_up_is_listed_and_run_again(
    project: Path, start: Callable[..., Process], redis_url: str
) -> None:
    async def manage(*options: str) -> tuple[int, str, str]:
        process = start(redis_url, "tasks", "--log-level", "error", *options)
        process.close()
        status, log, output = await asyncio.to_thread(process.end)
        return status, log, output.decode()

    assert await manage() == (0, "no abandoned tasks\n", "")
    _, url = served(start, redis_url, "--workers", "0")
    async with httpx2.AsyncClient(timeout=60) as http:
        task = await begun(http, url, "fatal", 1, 0.0)
        for _ in range(MAX_DEATHS):
            assert (await asyncio.to_thread(start(redis_url, "worker").popen.wait, 60)) == -signal.SIGKILL
        workers = start(redis_url, "worker")
        workers.await_log("abandoned a task of fatal after its process died 3 times; the `tasks` command lists it")
        assert (await wait_for_end(http, url, task))["status"] == "failed"
        status, _, listed = await manage()
        assert status == 0
        assert re.fullmatch(rf"{task}  fatal  by anonymous  called \S+  abandoned \S+ after 3 deaths .*\n", listed)
        (project / "mended").touch()
        status, log, output = await manage("--run-again", task)
        assert (status, log) == (0, "")
        again = output.strip()
        content = (await wait_for_end(http, url, again))["result"]["content"]
        assert (await wait_for_end(http, url, task))["status"] == "failed", "what is over does not change"
    keys = (project / "keys").read_text().split()
    assert (len(keys), len(set(keys))) == (MAX_DEATHS + 1, 1), "its effects have the same keys"
    assert content == [{"type": "text", "text": "did 1 at last"}]
    assert await manage() == (0, "no abandoned tasks\n", "")
    status, log, _ = await manage("--run-again", task)
    assert (status, "is not the ID of an abandoned task, or the task was already rerun" in log) == (1, True)
