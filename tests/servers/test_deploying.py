"""`docs/deploy.md` and `examples/deploy/`: an image, files for container platforms, and a working proxy."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import mcp
import mcp_types as types
import pytest
import yaml
from conftest import ROOT

import images
from command_line import stubwright
from packages import generate, imported, manifest, tool
from processes import start_process
from proxy import run_proxy
from server_process import Process
from stubwright import __version__

FOLDER = ROOT / "examples" / "deploy"
PAGE = (ROOT / "docs" / "deploy.md").read_text("utf-8")
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
KUBERNETES = {
    (one["kind"], one["metadata"]["name"]): one
    for one in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8"))
}
PODS = {name: one["spec"]["template"]["spec"] for (kind, name), one in KUBERNETES.items() if kind == "Deployment"}


# The page and the files


def test_the_page_links_to_each_file() -> None:
    linked = {*re.findall(r"\]\(\.\./examples/deploy/([\w.]+)\)", PAGE)}
    assert linked == {path.name for path in FOLDER.iterdir()}


# The image


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    done = stubwright("new", "shop", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "shop"


def test_the_dockerfile_is_what_new_writes(project: Path) -> None:
    assert (FOLDER / "Dockerfile").read_text("utf-8") == (project / "Dockerfile").read_text("utf-8")


@pytest.mark.long
def test_the_image_has_the_server_alone_and_serves(project: Path, tmp_path: Path) -> None:
    (project / "shop_server" / "__pycache__").mkdir(exist_ok=True)
    (project / "shop_server" / "__pycache__" / "stale.pyc").touch()
    image = images.build(project, tmp_path)
    assert image.user == "10001:10001"
    made = [step for step in image.steps if step.startswith(("RUN", "COPY"))]
    assert made == ["COPY --from=build /opt/server /opt/server"], "nothing is made in the last stage"
    [site] = image.root.glob("opt/server/lib/python*/site-packages")
    found = {path.name for path in site.iterdir()}
    runtime = {"stubwright_runtime", f"stubwright_runtime-{__version__}.dist-info"}
    assert found == {"base.pth", "shop_mcp", "shop_server", "shop_mcp-0.1.0.dist-info", *runtime}
    assert not [*image.root.rglob("stale.pyc")]
    assert {path.name for path in (image.root / "opt/server/bin").iterdir() if "python" not in path.name.lower()} == {
        "activate", "activate.csh", "activate.fish", "Activate.ps1", "shop-mcp",
    }  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command, probe = (
        [word.replace(str(image.port), str(port)) for word in image.local(words)]
        for words in (image.entrypoint + image.command, image.healthcheck)
    )
    assert subprocess.run(probe, cwd="/", stderr=subprocess.DEVNULL, check=False).returncode != 0
    with start_process(command, cwd="/", env={}, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "startup complete" not in (line := process.stderr.readline()):
            assert line
        assert asyncio.run(_rolled(f"http://127.0.0.1:{port}/mcp")) in (1, 2)
        assert subprocess.run(probe, cwd="/", check=False).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.long
def test_the_image_has_the_locked_versions(project: Path, tmp_path: Path) -> None:
    context = tmp_path / "shop"
    shutil.copytree(project, context)
    (context / "requirements.txt").write_text("")  # the third parties are in the base image here
    image = images.build(context, tmp_path / "image")
    [site] = image.root.glob("opt/server/lib/python*/site-packages")
    assert (site / "stubwright_runtime" / "lazy.py").is_file()
    [wheel] = (context / "wheels").glob("*.whl")
    (context / "requirements.txt").write_text(f"stubwright-runtime @ {wheel.as_uri()}\n")
    with pytest.raises(AssertionError, match="Hashes are required in --require-hashes mode"):
        images.build(context, tmp_path / "unlocked")


@pytest.mark.long
def test_the_image_of_a_vendored_project_needs_no_wheel(tmp_path: Path) -> None:
    assert stubwright("new", "shop", cwd=tmp_path).returncode == 0
    project = tmp_path / "shop"
    file = project / "pyproject.toml"
    text = file.read_text("utf-8") + 'runtime = "vendored"\n'
    text = text.replace('"generated/shop_mcp"]', '"generated/shop_mcp", "generated/stubwright_runtime"]')
    file.write_text(text, "utf-8")
    done = stubwright("generate", cwd=project)
    [needed] = re.findall(r"^  it needs (.*)$", done.stdout, re.MULTILINE)
    listed = ", ".join(json.dumps(each) for each in re.split(", (?=[a-z])", needed))
    file.write_text(text.replace('\n  "stubwright-runtime",\n', listed), "utf-8")
    assert stubwright("check", "--strict", cwd=project).returncode == 0
    dockerfile = project / "Dockerfile"
    dockerfile.write_text(
        dockerfile.read_text("utf-8").replace('"$(echo /wheels/stubwright_runtime-*.whl)[redis]"', '"redis>=8.1"'),
        "utf-8",
    )
    image = images.build(project, tmp_path / "image")
    [site] = image.root.glob("opt/server/lib/python*/site-packages")
    assert (site / "stubwright_runtime" / "lazy.py").is_file()
    command = [*image.local(image.entrypoint), "--help"]
    assert subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0


async def _rolled(url: str) -> int:
    async with mcp.Client(url) as client:
        result = await client.call_tool("roll_dice", {"sides": 2})
    assert result.structured_content is not None
    return int(result.structured_content["total"])


# Options, keys and times


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package of a server with tasks."""
    folder = tmp_path_factory.mktemp("shop")
    generate(folder, manifest([tool("ship", execution={"taskSupport": "optional"})], name="shop"))
    with imported(folder, "shop_mcp") as package:
        yield package


def commands() -> dict[str, list[str]]:
    """What each container is told, by its name."""
    services = {f"compose {name}": COMPOSE["services"][name]["command"] for name in ("server", "worker")}
    pods = {f"kubernetes {name}": pod["containers"][0]["args"] for name, pod in PODS.items()}
    return {name: [str(word) for word in words] for name, words in {**services, **pods}.items()}


def parsed(shop: ModuleType, words: list[str]) -> Any:
    main = importlib.import_module("stubwright_runtime.server.main")
    package = importlib.import_module("shop_mcp.registry").PACKAGE
    return main._parser(package).parse_args(words)


@pytest.mark.parametrize("name", commands())
def test_each_command_is_understood(name: str, shop: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--state" not in commands()[name], "other processes can read it there"
    monkeypatch.setenv("STUBWRIGHT_STATE", "redis://here/0")
    options = parsed(shop, commands()[name])
    assert options.state == "redis://here/0"
    assert parsed(shop, [*commands()[name], "--state", "redis://there/1"]).state == "redis://there/1"
    if options.command == "worker":
        assert (options.http, options.workers) == (None, None)
    else:
        assert options.http == ("0.0.0.0", 8000)
        assert (options.health, options.workers, options.allow_host) == (True, 0, ["mcp.example.com"])


def test_what_is_stopped_gets_the_time_that_it_takes(shop: ModuleType) -> None:
    grace = {name: parsed(shop, words).grace for name, words in commands().items()}
    for name in ("server", "worker"):
        assert int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s")) >= grace[f"compose {name}"] + 5
    for name, pod in PODS.items():
        [said] = [pod["containers"][0].get("lifecycle", {"preStop": {"exec": {"command": ["sleep(0)"]}}})]
        before = int(re.findall(r"sleep\((\d+)\)", said["preStop"]["exec"]["command"][-1])[0])
        assert pod["terminationGracePeriodSeconds"] >= before + grace[f"kubernetes {name}"] + 5


def test_keys_are_given_as_the_server_reads_them(shop: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    places = importlib.import_module("stubwright_runtime.state.stores")
    package = importlib.import_module("shop_mcp.registry").PACKAGE
    for name in ("server", "worker"):
        variable, url = COMPOSE["services"][name]["environment"]
        assert url == "STUBWRIGHT_STATE"
        assert f"{url}=" in (FOLDER / "kubernetes.yaml").read_text("utf-8")
        assert f"{variable}=" in (FOLDER / "kubernetes.yaml").read_text("utf-8")
        monkeypatch.setenv(variable, "short")
        with pytest.raises(places.StoreConfigurationError, match=f"{variable} has no keys"):
            places.store_at("redis://here", package)


def test_containers_of_compose_are_as_closed_as_pods() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert services["redis"]["networks"] == ["state"]
    assert "state" not in services["proxy"]["networks"]
    assert COMPOSE["networks"]["state"] == {"internal": True}
    assert COMPOSE["configs"]["redis"]["content"].startswith("requirepass ${REDIS_PASSWORD")
    assert "/etc/redis.conf" in services["redis"]["command"]
    for name in ("server", "worker"):
        assert "${REDIS_PASSWORD" in services[name]["environment"]["STUBWRIGHT_STATE"]


def test_pods_are_closed_spread_and_kept() -> None:
    kinds = {kind for kind, _ in KUBERNETES}
    assert {"NetworkPolicy", "PodDisruptionBudget"} <= kinds
    for name, pod in PODS.items():
        labels = {"matchLabels": {"app": name}}
        assert pod["automountServiceAccountToken"] is False
        [spread] = pod["topologySpreadConstraints"]
        assert spread["labelSelector"] == labels
        assert pod["securityContext"]["runAsNonRoot"] is True
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert KUBERNETES["Deployment", name]["spec"]["replicas"] >= 2
        assert KUBERNETES["PodDisruptionBudget", name]["spec"] == {"maxUnavailable": 1, "selector": labels}
        assert KUBERNETES["NetworkPolicy", name]["spec"]["podSelector"] == labels
    [rule] = KUBERNETES["NetworkPolicy", "shop"]["spec"]["ingress"]
    assert rule["ports"] == [{"port": "http"}]
    assert "ingress" not in KUBERNETES["NetworkPolicy", "shop-worker"]["spec"]


def test_pods_are_chosen_by_their_labels() -> None:
    pods = [
        one["spec"]["template"]["metadata"]["labels"] for (kind, _), one in KUBERNETES.items() if kind == "Deployment"
    ]
    chosen = {
        name: one["spec"]["selector"].get("matchLabels", one["spec"]["selector"])
        for name, one in KUBERNETES.items()
        if "selector" in one["spec"]
    }
    assert all(labels in pods for labels in chosen.values())
    assert [kind for (kind, _), labels in chosen.items() if labels == {"app": "shop"}] == [
        "Deployment", "Service", "PodDisruptionBudget",
    ]  # fmt: skip


# The proxy

MANIFEST = manifest(
    [
        tool("where"),
        tool("slow"),
        tool(
            "order",
            stubwright={
                "ask": {
                    "size": {
                        "message": "Which size?",
                        "schema": {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]},
                    }
                }
            },
        ),
    ],
    name="process",
)

HANDLERS = """
import asyncio, os

class Shop:
    async def where(self, args, ctx):
        return str(os.getpid())

    async def slow(self, args, ctx):
        await asyncio.sleep(0.4)
        return str(os.getpid())

    async def order(self, args, ctx):
        answer = await ctx.ask.size()
        return f"{answer.size} at {os.getpid()}"
"""


class Servers:
    """Three servers, each of which can be stopped and started again at the same port."""

    def __init__(self, project: Path, state: str) -> None:
        self._project = project
        self._options = ("--handlers", "shop:Shop", "--state", state, "--health", "--grace", "10")
        self._ending = ExitStack()
        self.processes = [self._start(0) for _ in range(3)]
        self.ports = [_port(process) for process in self.processes]
        for process in self.processes:
            process.drain()

    def _start(self, port: int) -> Process:
        process = Process(self._project, *self._options, "--http", f"127.0.0.1:{port}")
        self._ending.callback(process.kill)
        return process

    def restart(self, number: int) -> None:
        """Ask one to stop, wait until it has, and start another in its place."""
        self.processes[number].popen.send_signal(signal.SIGTERM)
        assert self.processes[number].popen.wait(60) == 0
        self.processes[number] = self._start(self.ports[number])
        assert _port(self.processes[number]) == self.ports[number]
        self.processes[number].drain()

    def close(self) -> None:
        self._ending.close()


def _port(process: Process) -> int:
    return int(process.url().rpartition("/")[0].rpartition(":")[2])


@pytest.fixture
def servers(tmp_path: Path, redis_url: str) -> Iterator[Servers]:
    if shutil.which("haproxy") is None:
        pytest.skip("haproxy is not installed")
    generate(tmp_path, MANIFEST)
    (tmp_path / "shop.py").write_text(HANDLERS)
    made = Servers(tmp_path, redis_url)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def url(servers: Servers, tmp_path: Path) -> Iterator[str]:
    with run_proxy(FOLDER / "haproxy.cfg", servers.ports, tmp_path) as found:
        yield found


async def _answer(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"size": "L"})


@asynccontextmanager
async def connected(url: str, mode: Any) -> AsyncIterator[mcp.Client]:
    async with mcp.Client(url, mode=mode, elicitation_callback=_answer) as client:
        yield client


async def told(client: mcp.Client, name: str) -> str:
    result = await client.call_tool(name)
    [block] = result.content
    assert isinstance(block, types.TextContent)
    assert not result.is_error, block.text
    return block.text


@pytest.mark.anyio
async def test_sessions_stay_at_their_server_and_are_asked_there(url: str) -> None:
    homes = set()
    for _ in range(6):
        async with connected(url, "legacy") as client:
            home = await told(client, "where")
            assert {await told(client, "where") for _ in range(4)} == {home}
            assert await told(client, "order") == f"L at {home}"
            homes.add(home)
    assert len(homes) > 1


@pytest.mark.anyio
async def test_pods_are_probed_where_servers_answer(servers: Servers) -> None:
    [container] = PODS["shop"]["containers"]
    assert container["ports"] == [{"name": "http", "containerPort": 8000}]
    async with httpx2.AsyncClient() as http:
        for kind in ("startup", "readiness", "liveness"):
            path = container[f"{kind}Probe"]["httpGet"]["path"]
            answer = await http.get(f"http://127.0.0.1:{servers.ports[0]}{path}", headers={"host": "10.0.0.7:8000"})
            assert answer.status_code == 200


@pytest.mark.anyio
async def test_requests_of_2026_07_28_go_to_all_servers(url: str) -> None:
    async with connected(url, "2026-07-28") as client:
        assert len({await told(client, "where") for _ in range(12)}) == 3
        assert [(await told(client, "order"))[:5] for _ in range(4)] == ["L at "] * 4


@pytest.mark.anyio
async def test_no_call_fails_while_each_server_is_restarted(servers: Servers, url: str) -> None:
    answered: Counter[str] = Counter()
    failures: list[str] = []
    is_terminal = False

    async def call(number: int) -> None:
        async with connected(url, "2026-07-28") as client:
            while not is_terminal:
                try:
                    answered[await told(client, "slow" if number % 4 == 0 else "where")] += 1
                except (mcp.MCPError, httpx2.HTTPError, AssertionError) as error:
                    failures.append(repr(error))

    callers = [asyncio.create_task(call(number)) for number in range(20)]
    for number in range(3):
        await asyncio.sleep(1.3)  # in which the proxy finds the one before
        await asyncio.to_thread(servers.restart, number)
    for _ in range(200):
        await asyncio.sleep(0.1)
        if len(answered) == 6:
            break
    is_terminal = True
    await asyncio.gather(*callers)
    assert failures == []
    assert len(answered) == 6, "three before, three after"
    print(f"{sum(answered.values())} calls, none failed: {json.dumps(answered)}")
