"""`stubwright dev` serves, reloads after each valid save, survives invalid saves, and cleans up its processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

import amounts
import forked
from command_line import stubwright
from developing import Dev, ask, dev, poll, tools
from editors import write
from processes import await_end, is_alive
from stubwright.project.handwritten import modules
from stubwright.serving import processes
from stubwright.serving.processes import ServerSupervisor

MANIFEST = """\
stubwright: 1
server: {name: diary, version: 1.0.0}
python: {handlers: "diary:Diary"}
tools: [{name: %s, description: Does., inputSchema: {type: object}}]
"""
HANDLERS = """\
import asyncio, os
from diary_mcp import DiaryHandlers
from helper import WORD

class Diary(DiaryHandlers):
    async def say(self, args, ctx):
        if "wait" in args.model_extra:
            open("began", "w").close()
            await asyncio.sleep(args.model_extra["wait"])
        return f"{WORD} one {os.getpid()}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "pyproject.toml", '[tool.stubwright]\nmanifests = ["diary.yaml"]\n')
    write(tmp_path / "diary.yaml", MANIFEST % "say")
    write(tmp_path / "src" / "diary.py", HANDLERS)
    write(tmp_path / "src" / "helper.py", "WORD = 'helped'\n")
    return tmp_path


def test_it_serves_and_takes_over_at_each_good_save(project: Path) -> None:
    with dev(project) as it:
        told = it.says("For a client's configuration:\n")
        it.says("interrupt to stop")
        snippet, _ = json.JSONDecoder().raw_decode(told.partition("\n")[2])
        assert snippet == {"mcpServers": {"diary": {"type": "http", "url": it.url}}}
        first = it.answers("helped one")

        write(project / "src" / "diary.py", HANDLERS.replace("one", "two"))
        second = it.answers("helped two")
        assert first != second

        write(project / "src" / "helper.py", "WORD = 'better'\n")  # the handlers only import it
        third = it.answers("better two")

        write(project / "src" / "diary.py", HANDLERS.replace("say", "tell"))
        write(project / "diary.yaml", MANIFEST % "tell")
        end = time.monotonic() + 30
        while poll(tools(it.url)) != ["tell"]:
            assert time.monotonic() < end
            time.sleep(0.05)
        last = int(it.ask("tell")[0].rpartition(" ")[2])
        it.process.send_signal(signal.SIGINT)
        assert it.process.wait(20) == 0
    assert [process for process in (first, second, third, last) if is_alive(process)] == []


@pytest.mark.long
def test_each_server_lets_a_debugger_attach_at_the_same_port(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = f"a debugger can attach to 127.0.0.1:{port} and run any code in this process"
    with dev(project, "--debug-port", str(port), python=[sys.executable]) as it:
        it.says(said)
        it.answers("helped one")
        with socket.create_connection(("127.0.0.1", port), 30):  # what keeps debugpy's own process going
            write(project / "src" / "diary.py", HANDLERS.replace("one", "two"))
            it.says("Finished server process")
            it.says("diary_mcp: serving")
        it.says(said)
        it.answers("helped two")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--debug-port", "soon"], "--debug-port: 'soon' is not a port number; expected one such as 5678"),
        (["--debug-wait"], "--debug-wait requires --debug-port, such as --debug-port 5678"),
    ],
)
def test_options_for_a_debugger_that_are_wrong(options: list[str], said: str, project: Path) -> None:
    done = stubwright("dev", *options, cwd=project)
    assert (done.returncode, done.stderr) == (2, f"stubwright: {said}\n")


@pytest.mark.long
def test_of_two_saves_in_one_second_the_second_is_served(project: Path) -> None:
    handlers = project / "src" / "diary.py"
    second = handlers.stat().st_mtime_ns
    with dev(project, environment={"PYTHONDONTWRITEBYTECODE": ""}) as it:
        it.says("interrupt to stop")
        it.answers("helped one")
        newer = project / "newer"
        write(newer, HANDLERS.replace("one", "two"))  # still the same length
        os.utime(newer, ns=(second, second))  # Python's bytecode knows whole seconds
        newer.replace(handlers)
        it.answers("helped two")


@pytest.mark.long
def test_a_broken_save_keeps_the_last_good_server(project: Path) -> None:
    with dev(project) as it:
        it.says("interrupt to stop")
        first = it.answers("helped one")
        for file, broken, said in (
            ("diary.yaml", "stubwright: [", "error[SW004]"),
            ("src/diary.py", "class Diary(:\n", "SyntaxError"),
            ("src/diary.py", HANDLERS.replace("def say", "def other"), "lacks a method"),
        ):
            good = (project / file).read_text()
            write(project / file, broken)
            it.says(said)
            it.says("the last valid version keeps running; the next valid save will be served")
            assert it.answers("helped one") == first
            write(project / file, good)
            it.says("serving")
            new = it.answers("helped one")
            end = time.monotonic() + 20
            while new == first:  # the old server may answer until the new one has started
                assert time.monotonic() < end
                new = it.answers("helped one")
            first = new
        write(project / "src" / "diary.py", "import later\n" + HANDLERS)
        it.says("No module named 'later'")
        write(project / "src" / "later.py", "")  # what was missing may come, too
        it.says("serving")


def test_the_last_good_server_answers_what_nobody_has_asked_it_before(project: Path) -> None:
    with dev(project) as it:
        it.says("interrupt to stop")
        write(project / "diary.yaml", MANIFEST % "tell")  # the package is generated again, and has no model of `say`
        it.says("the last valid version keeps running")
        it.answers("helped one")


@pytest.mark.long
def test_a_save_between_the_proof_and_the_start_keeps_the_last_good_server(project: Path) -> None:
    handlers = project / "src" / "diary.py"
    with dev(project) as it:
        it.says("interrupt to stop")
        first = it.answers("helped one")
        saving = 'from pathlib import Path\nPath(__file__).write_text("class Diary(:")\n'
        write(handlers, HANDLERS + saving)  # saved as the proof imports it
        it.says("SyntaxError")
        it.says("the last valid version keeps running")
        assert it.answers("helped one") == first
        write(handlers, HANDLERS.replace("one", "two"))
        it.answers("helped two")
        assert "no server is running" not in it.log.read_text()
        assert "it is started again" not in it.log.read_text()


HANGING = "open('begun', 'w').write(str(os.getpid()))\nimport time\ntime.sleep(1000)\n"


def outlast_hang(it: Dev, handlers: Path, hanging: str, seconds: int, stack: str = "") -> None:
    """Save handlers that hang, which is told, perhaps with the stack, and then good ones, which are served."""
    it.says("interrupt to stop")
    first = it.answers("helped one")
    write(handlers, hanging)
    it.says(f"the new server has not started after {seconds} s; the last valid version keeps running, and the next ")
    it.says(stack)
    assert it.answers("helped one") == first
    write(handlers, HANDLERS.replace("one", "two"))
    it.answers("helped two")


@pytest.mark.long
def test_handlers_that_hang_at_import_are_told_and_end_with_the_next_save(project: Path) -> None:
    handlers, begun = project / "src" / "diary.py", project / "begun"
    with dev(project) as it:
        line = (HANDLERS + HANGING).count("\n")
        stack = f'the handlers are at\n  File "{handlers}", line {line}, in <module>\n    time.sleep(1000)\n'
        outlast_hang(it, handlers, HANDLERS + HANGING, 5, stack)
        assert not is_alive(int(begun.read_text()))


@pytest.mark.long
def test_an_interrupt_ends_handlers_that_hang_at_import(project: Path) -> None:
    handlers, begun = project / "src" / "diary.py", project / "begun"
    with dev(project, slow=1) as it:
        it.says("interrupt to stop")
        write(handlers, HANDLERS + HANGING)
        it.says("the new server has not started")
        it.process.send_signal(signal.SIGINT)
        assert it.process.wait(20) == 0
    assert not is_alive(int(begun.read_text()))


@pytest.mark.long
def test_a_server_that_hangs_after_its_proof_ends_with_the_next_save(project: Path) -> None:
    handlers, begun = project / "src" / "diary.py", project / "begun"
    hanging = "import time\nif 'server.py' in sys.argv[0]:\n    open('begun', 'w').write(str(os.getpid()))\n    "
    with dev(project, slow=1) as it:
        outlast_hang(it, handlers, "import sys\n" + HANDLERS + hanging + "time.sleep(1000)\n", 1)
        assert not is_alive(int(begun.read_text()))


def test_replaced_servers_that_ignore_sigterm_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PATIENCE", 0.1)
    ignoring = ["sh", "-c", "trap '' TERM; echo; exec sleep 60"]
    with ServerSupervisor("127.0.0.1", 0, lambda _: None, lambda _: None) as supervisor:
        servers = [subprocess.Popen(ignoring, stdout=subprocess.PIPE, start_new_session=True) for _ in range(2)]
        for server in servers:
            with server.stdout as started:  # type: ignore[union-attr]
                started.readline()
        supervisor._servers += servers
        supervisor._stop_servers(wait=False)
        assert [server.wait(10) for server in servers] == [-signal.SIGKILL] * 2


@pytest.mark.long
def test_handlers_that_end_the_process_at_import_are_told(project: Path) -> None:
    with dev(project) as it:
        it.says("interrupt to stop")
        first = it.answers("helped one")
        for ending, said in (
            ("raise SystemExit", "the process exited with status 0 before it created the server"),
            ("os._exit(0)", "the process exited with status 0 before it created the server"),
            (
                "os.write(2, b'bye\\n'); os._exit(3)",
                "bye\nthe process exited with status 3 before it created the server",
            ),
            ("raise SystemExit('set DATABASE_URL')", "set DATABASE_URL"),
        ):
            write(project / "src" / "diary.py", HANDLERS + ending)
            goes_on = "stubwright: the last valid version keeps running"
            it.says(f"stubwright: the server cannot be created:\n{said}\n{goes_on}")
            assert it.answers("helped one") == first


@pytest.mark.long
def test_handlers_may_start_threads_and_processes_at_import(project: Path) -> None:
    starting = (
        "import subprocess, threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "child = subprocess.Popen(['sleep', '1000'])\nopen('children', 'a').write(f'{child.pid}\\n')\n"
    )
    with dev(project, python=[sys.executable]) as it:
        it.says("interrupt to stop")
        write(project / "src" / "diary.py", HANDLERS.replace("one", "two") + starting)
        it.answers("helped two")
        proved, served = map(int, (project / "children").read_text().split())
        assert not is_alive(proved)  # the proof has ended
        assert is_alive(served)
        write(project / "src" / "diary.py", HANDLERS.replace("one", "three") + starting)
        it.answers("helped three")
        last = int((project / "children").read_text().split()[-1])
        assert last != served
        await_end(served)
        assert is_alive(last)
        it.process.send_signal(signal.SIGINT)
        assert it.process.wait(20) == 0
    await_end(last)


@pytest.mark.long
def test_a_request_in_flight_gets_its_answer(project: Path) -> None:
    async def both(it: Dev) -> list[str]:
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(ask(it.url, "say", wait=1.2))
            while not (project / "began").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
            write(project / "src" / "diary.py", HANDLERS.replace("one", "two"))
            async with asyncio.timeout(30):
                while not (await ask(it.url, "say"))[0].startswith("helped two"):  # noqa: ASYNC110 - none is refused
                    await asyncio.sleep(0.02)
        return slow.result()

    with dev(project) as it:
        it.says("interrupt to stop")
        first = it.answers("helped one")
        assert asyncio.run(both(it)) == [f"helped one {first}"]


@pytest.mark.parametrize("number", [signal.SIGTERM, amounts.mark_long(signal.SIGHUP)])
def test_a_signal_ends_it_and_its_server(project: Path, number: signal.Signals) -> None:
    with dev(project) as it:
        it.says("interrupt to stop")
        server = it.answers("helped one")
        it.process.send_signal(number)
        assert it.process.wait(20) == 0
        assert not is_alive(server)
        assert "Traceback" not in it.log.read_text()


@pytest.mark.long
def test_a_server_that_ends_by_itself_is_told_and_comes_with_the_next_save(project: Path) -> None:
    with dev(project) as it:
        it.says("interrupt to stop")
        os.kill(it.answers("helped one"), signal.SIGKILL)
        it.says("the server was killed by signal 9; it restarts at the next save")
        write(project / "src" / "helper.py", "WORD = 'again'\n")
        it.says("serving")
        it.answers("again one")


@pytest.mark.long
def test_a_project_that_is_broken_at_first_is_served_once_it_is_mended(project: Path) -> None:
    write(project / "diary.yaml", "stubwright: [")
    with dev(project) as it:
        it.says("no server is running; the next valid save will be served")
        write(project / "diary.yaml", MANIFEST % "say")
        it.says("interrupt to stop")
        it.answers("helped one")


def test_an_address_that_is_taken_is_told(project: Path) -> None:
    with dev(project) as it:
        it.says("interrupt to stop")
        address = it.url.removeprefix("http://").removesuffix("/mcp")
        done = stubwright("dev", "--http", address, cwd=project)
    assert done.returncode == 1
    assert (
        f"stubwright: cannot listen on {address}: Address already in use; use port 0 for any free port" in done.stderr
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "nowhere"], "--http is 'nowhere'; expected HOST:PORT, such as 127.0.0.1:8000"),
        (["--http", "fd:3"], "--http is 'fd:3'; expected HOST:PORT"),
        (["--python", "nowhere"], "--python nowhere: file not found"),
        (["a.yaml", "b.yaml"], "unrecognized arguments: b.yaml"),
    ],
)
def test_a_wrong_command_line_is_told(project: Path, options: list[str], said: str) -> None:
    done = stubwright("dev", *options, cwd=project)
    assert done.returncode == 2
    assert said in done.stderr


def test_without_npx_there_is_no_inspector(project: Path, tmp_path: Path) -> None:
    done = stubwright("dev", "--inspector", cwd=project, env={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr == (
        "stubwright: --inspector requires npx, which is not on the PATH; install Node.js: https://nodejs.org\n"
    )


@pytest.mark.long
def test_the_inspector_is_opened_on_the_server_and_ended_with_it(project: Path, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    write(bin_ / "npx", f'#!/bin/sh\necho "npx $@"\necho $$ > {tmp_path}/inspector\nsleep 60\n')
    (bin_ / "npx").chmod(0o755)
    with dev(project, "--inspector", environment={"PATH": f"{bin_}:{os.environ['PATH']}"}) as it:
        it.says("npx -y @modelcontextprotocol/inspector --transport http --server-url")
        it.says(f"npx -y @modelcontextprotocol/inspector --transport http --server-url {it.url}\n")
        write(project / "src" / "helper.py", "WORD = 'again'\n")
        it.answers("again one")
        it.process.terminate()
        assert it.process.wait(20) == 0
    assert not is_alive(int((tmp_path / "inspector").read_text()))


def test_what_a_module_imports_of_its_project_is_found(tmp_path: Path) -> None:
    for name, text in {
        "app/__init__.py": "from . import one",
        "app/one.py": "import os, pydantic\nfrom .two import x\nfrom ..beyond import y",
        "app/two/__init__.py": "def late():\n    import three, app.missing",
        "three.py": "import (",
        "other.py": "",
    }.items():
        write(tmp_path / name, text)
    found = {path.relative_to(tmp_path).as_posix() for path in modules.find_reached("app.one", [str(tmp_path)])}
    there = {name for name in found if (tmp_path / name).exists()}
    assert there == {"app/__init__.py", "app/one.py", "app/two/__init__.py", "three.py"}
    assert {"app/missing.py", "app/missing/__init__.py", "pydantic.py"} <= found
    assert not any(name.startswith("os") for name in found)


@pytest.mark.long
def test_the_page_of_examples_works_as_written(tmp_path: Path) -> None:
    page = (ROOT / "examples" / "README.md").read_text("utf-8")
    serve, call, install = re.findall(
        r"^(?:PYTHONPATH=generated )?((?:stubwright|python) [^#]+?) +#", page, re.MULTILINE
    )[:3]
    assert install == "stubwright install claude specs/weather.yaml"
    for name in ("specs/weather.yaml", "specs/weather.md", "examples/weather.py", "examples/call.py"):
        write(tmp_path / name, (ROOT / name).read_text("utf-8"))
    write(tmp_path / "pyproject.toml", '[tool.stubwright]\nhandlers = ["examples"]\n')
    with dev(tmp_path, *serve.split()[2:]) as it:
        it.says("interrupt to stop")
        program = tmp_path / call.split()[1]
        program.write_text(program.read_text("utf-8").replace("http://127.0.0.1:8000/mcp", it.url), "utf-8")
        called = forked.python(call.split()[1:], tmp_path, [Path("generated")])
    assert (called.returncode, called.stdout) == (0, "22.5\n"), called.stderr
