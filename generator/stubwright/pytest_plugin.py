"""The pytest plugin: `@pytest.mark.contract(TARGET)` runs each check in `stubwright test` as a test.

The server is tested once per pytest process, in a subprocess, when the first of these tests runs. The compiler is not
imported unless the mark is used.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from stubwright.contract_tests.checks import Check

_PARAMETER: Final = "contract_check"
_MARK: Final = (
    "contract(target, *, tools, cases, seed, allow_writes, probe, deadline, budget, rate, strict, scopes, handlers, "
    "env, headers): test an MCP server (a manifest, contract, URL or command list), with a test for each check in "
    "`stubwright test`"
)
_LISTS: Final = {"tools": "tool", "scopes": "scope"}
_MAPPINGS: Final = {"env": ("env", "="), "headers": ("header", ": ")}
_OPTIONS: Final = ("cases", "seed", "probe", "deadline", "budget", "rate", "handlers")
_FLAGS: Final = ("allow_writes", "strict")
_SHOWN: Final = 2_000
"""The maximum length of the message if stubwright could not test the server."""


def pytest_configure(config: pytest.Config) -> None:
    """Register `@pytest.mark.contract`."""
    config.addinivalue_line("markers", _MARK)
    config.stash[_RUNS] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a marked test with all checks. Raises pytest.Collector.CollectError if the mark is invalid."""
    mark = metafunc.definition.get_closest_marker("contract")
    if mark is None:
        return
    from stubwright.contract_tests.checks import CHECKS

    words = _make_words(mark)
    metafunc.fixturenames.append(_PARAMETER)
    metafunc.parametrize(
        _PARAMETER,
        [pytest.param((check, words), id=check.name) for check in CHECKS],
        indirect=True,
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Reject the mark on items that pytest cannot parametrize, such as unittest methods. Raises pytest.UsageError."""
    if item.get_closest_marker("contract") is not None and not hasattr(item, "callspec"):
        raise pytest.UsageError(f"@pytest.mark.contract requires a pytest function, and {item.name} is not one")


@pytest.fixture
def contract_check(request: pytest.FixtureRequest) -> Any:
    """Return the check that this test runs, and the arguments of `stubwright test`."""
    return request.param


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run the check after the test function."""
    result = yield
    mark = pyfuncitem.get_closest_marker("contract")
    if mark is not None:
        check: Check
        words: tuple[str, ...]
        check, words = pyfuncitem.callspec.params[_PARAMETER]  # type: ignore[misc]
        runs = pyfuncitem.config.stash[_RUNS]
        if words not in runs:
            runs[words] = _run(words, pyfuncitem.config)
        _check(pyfuncitem, check, words, runs[words], is_strict=mark.kwargs.get("strict", False))
    return result


@dataclass(frozen=True, slots=True)
class _Run:
    report: Mapping[str, Any]
    problem: str = ""


_RUNS: Final = pytest.StashKey[dict[tuple[str, ...], _Run]]()


def _make_words(mark: pytest.Mark) -> tuple[str, ...]:
    """Return the arguments of `stubwright test`. Raises pytest.Collector.CollectError if the mark is invalid."""
    options = dict(mark.kwargs)
    words = [*_make_repeated(options)]
    words += [f"--{name}={options.pop(name)}" for name in _OPTIONS if name in options]
    words += [f"--{name.replace('_', '-')}" for name in _FLAGS if options.pop(name, False)]
    if options:
        raise pytest.Collector.CollectError(f"@pytest.mark.contract has no option `{next(iter(options))}`")
    match mark.args:
        case (str() | PathLike() as target,):
            return (*words, str(target))
        case ([_, *_] as command,):
            return (*words, "--", *map(str, command))
    raise pytest.Collector.CollectError(
        "@pytest.mark.contract requires a manifest, a contract, a URL, or a command as a list"
    )


def _make_repeated(options: dict[str, Any]) -> Iterator[str]:
    """Remove repeatable options from `options` and yield their arguments. Raises pytest.Collector.CollectError."""
    for name, option in _LISTS.items():
        values = options.pop(name, ())
        if isinstance(values, str):
            raise pytest.Collector.CollectError(f"@pytest.mark.contract: `{name}` must be a list, as in [{values!r}]")
        yield from (f"--{option}={value}" for value in values)
    for name, (option, between) in _MAPPINGS.items():
        yield from (f"--{option}={key}{between}{value}" for key, value in options.pop(name, {}).items())


_WRONG_COMMAND: Final = 2
"""The exit status if the mark's options are invalid for this server."""


def _run(words: Sequence[str], config: pytest.Config) -> _Run:
    command = [sys.executable, "-m", "stubwright", "test", "--format", "json", *words]
    done = subprocess.run(  # noqa: S603
        command, cwd=config.rootpath, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode == _WRONG_COMMAND or not done.stdout:
        return _Run({}, done.stderr.strip()[:_SHOWN] or f"stubwright exited with status {done.returncode}")
    document = json.loads(done.stdout)
    if isinstance(document, list):  # the diagnostics of an invalid manifest
        places = [f"{each['file']}:{each['line']}: " if each["file"] else "" for each in document]
        return _Run({}, "\n".join(place + each["message"] for place, each in zip(places, document, strict=True)))
    [report] = document["servers"]
    return _Run(report, report.get("problem", ""))


def _check(item: pytest.Function, check: Check, words: Sequence[str], run: _Run, *, is_strict: bool) -> None:
    from stubwright.contract_tests.checks import OF_CALLS, OF_PROBES

    if run.problem:
        pytest.fail(f"the server was not tested: {run.problem}", pytrace=False)
    report = run.report
    faults = [fault for fault in report["faults"] if fault["check"] == check.name]
    text = "\n\n".join("\n".join(_describe(fault)) for fault in faults)
    if faults and (is_strict or check.severity == "error"):
        pytest.fail(text, pytrace=False)
    if faults:
        item.add_report_section("call", "contract", text)
        return
    if report["away"]:
        pytest.fail(f"this check did not run: {report['away']}", pytrace=False)
    if check.since > report["revision"]:
        pytest.skip(f"MCP {report['revision']} does not have this rule")
    if check in OF_PROBES and not any(word.startswith("--probe=") for word in words):
        pytest.skip("this check requires `probe`")
    if check in OF_CALLS and not any(tool["valid"] + tool["invalid"] for tool in report["tools"]):
        reasons = {tool["skipped"] for tool in report["tools"]}
        pytest.skip(f"no tool was called: {'; '.join(sorted(filter(None, reasons))) or 'the server has no tools'}")


def _describe(fault: Mapping[str, Any]) -> Iterator[str]:
    more = f" ({fault['count']} calls)" if fault["count"] > 1 else ""
    place = f"tool `{fault['tool']}`: " if fault["tool"] else ""
    yield f"{place}{fault['message']}{more}"
    if fault["call"]:
        yield f"    {fault['call']}"
    yield f"    {fault['source']}"
