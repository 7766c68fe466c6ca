"""Fixtures and options for all tests."""

from __future__ import annotations

import gc
import os
import re
import secrets
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from hypothesis import HealthCheck, settings

import amounts
import forked
import processes
import redis_server
import reporting
from stubwright.incremental import worker
from stubwright_runtime.client.core.environment import find_withheld
from stubwright_runtime.network.certificates import share_tls_context
from stubwright_runtime.observability import redaction

processes.heed_interrupts()

gc.disable()  # while tests are collected: what is imported then is never garbage

# The time of an example depends on other load.
settings.register_profile(
    "untimed",
    settings(),
    deadline=None,
    max_examples=40 if amounts.IS_SAMPLE else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")

ROOT = Path(__file__).parents[1]

collect_ignore = ["cases"]  # their expected tests have the names of other packages' tests


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what golden cases expect")


LONG = re.compile(r"\b(mark\.long|amounts\.sample|amounts\.mark_long)\b")
"""How a file with tests marked `long` is found; LONG_TESTS in the Makefile is the same."""

FIRST = ("test_installing.py", "test_moved_servers.py")
"""Files with tests of a minute each: as the last ones of a run, they would leave the other processes without work."""


pytest_runtest_call = reporting.pytest_runtest_call


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # an xdist worker sends its reports to the process that prints them
        config.pluginmanager.register(reporting.Reporter(config))
        if not forked.WHOLE:
            forked.begin()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first, and refuse a mark that is not spelled in the test's own file.

    The Makefile looks there for the files to run.

    Raises pytest.UsageError.
    """
    texts = {path: path.read_text("utf-8") for path in {item.path for item in items}}
    for item in items:
        if item.get_closest_marker("long") and not LONG.search(texts[item.path]):
            raise pytest.UsageError(f"{item.nodeid}: write `pytest.mark.long` in its file; the Makefile needs it")
    items.sort(key=lambda item: item.path.name not in FIRST)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Look for garbage less often, and not among what is imported: a third of the time that generating takes.

    Commands look for none at all, and tests call what is below them.
    """
    gc.freeze()  # with the little garbage that there is: to look for it takes half a second in each process
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what runs keep for the next one out of the user's own cache folder."""
    os.environ["STUBWRIGHT_CACHE_DIR"] = str(tmp_path_factory.getbasetemp() / "cache")
    os.environ["STUBWRIGHT_CONFIG_DIR"] = str(tmp_path_factory.getbasetemp() / "config")


@pytest.fixture(scope="session", autouse=True)
def _certificates() -> Iterator[None]:
    """Read the certificates that this machine trusts once, and not for each client that a test makes."""

    def share(make: Callable[..., None]) -> Callable[..., None]:
        def make_sharing(transport: object, verify: ssl.SSLContext | bool = True, **options: object) -> None:
            make(transport, verify=share_tls_context() if verify is True else verify, **options)

        return make_sharing

    with pytest.MonkeyPatch.context() as patch:
        for kind in (httpx2.HTTPTransport, httpx2.AsyncHTTPTransport):
            patch.setattr(kind, "__init__", share(kind.__init__))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_workers() -> Iterator[None]:
    """Load modules here once that a worker of each command would load again; other tests cover workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "is_worthwhile", lambda: False)
        yield


@pytest.fixture(autouse=True)
def watch_shortly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of tests of `stubwright test` that end late end soon, so that they are not watched for long."""
    if request.path.parent.name == "contract_tests":
        monkeypatch.setattr("stubwright.contract_tests.crashes.LAST_MOMENT", 0.2)
        monkeypatch.setenv(forked.LAST_MOMENT, "0.2")


@pytest.fixture(autouse=True)
def _forget_secrets() -> None:
    """Forget the secrets of earlier tests, which are redacted in all later text outside calls."""
    names = vars(redaction)
    names["_LAST"] = type(names["_LAST"])()


@pytest.fixture(autouse=True)
def _let_sdk_servers_stream() -> None:
    """Forget that earlier tests stopped a server in this process, after which sse_starlette ends every stream."""
    if (sse := sys.modules.get("sse_starlette.sse")) is not None:
        sse.AppStatus.should_exit = False


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run async tests on asyncio alone: older versions of anyio's plugin run them on trio too, which is not needed."""
    return "asyncio"


@pytest.fixture
def nothing_to_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no variables here that a server which ends may have needed, so that no error names them."""
    for name in find_withheld(os.environ, frozenset(), (), at_start=True):
        monkeypatch.delenv(name)


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def mypy() -> list[str]:
    """The command of mypy, which knows from `make lint` or the run before what costs most: pydantic and the SDK."""
    return [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={ROOT / '.mypy_cache'}"]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real data that others wrote; it is not part of the repository."""
    folder = Path(os.environ.get("STUBWRIGHT_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not folder.is_dir():
        pytest.skip("the corpus of public servers is not here; set STUBWRIGHT_CORPUS to its folder")
    return folder


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis_server.RedisServer]:
    """A Redis server that the tests of one process share, and must not stop."""
    with redis_server.run_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_url(shared_redis: redis_server.RedisServer) -> str:
    """A place for state in Redis that no other test has."""
    return f"{shared_redis.url}?prefix={secrets.token_hex(8)}"


@pytest.fixture(params=["memory", "redis"])
def state(request: pytest.FixtureRequest) -> str:
    """A place for state that no other test has, of each kind."""
    return "memory://" if request.param == "memory" else str(request.getfixturevalue("redis_url"))


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of the official conformance suite, fetched once, however many processes the tests run in."""
    import fcntl  # Windows lacks it, and runs other tests

    import conformance

    with (tmp_path_factory.getbasetemp().parent / "conformance.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return conformance.fetch()
        except conformance.NotRunError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))
