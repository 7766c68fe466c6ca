"""MCP's official conformance suite finds no fault in the server that is compiled from `specs/everything/`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import amounts
import conformance
from conformance import Check, NotRunError

# Scenarios beyond the requirements of a revision, without a score; all of them must have run.
UNSCORED = {
    "2025-11-25": {"json-schema-2020-12", "server-session-lifecycle", "server-sse-polling"},
    "2026-07-28": {
        "http-custom-header-server-validation",
        "http-header-validation",
        "json-schema-2020-12",
        *(
            f"tasks-{name}"
            for name in ("capability-negotiation", "dispatch-and-envelope", "lifecycle", "mrtr-composition")
        ),
        *(
            f"tasks-{name}"
            for name in ("mrtr-input", "request-headers", "request-state-removal", "required-task-error")
        ),
        "tasks-wire-fields",
    },
}
# The minimum number of checks, excluding skipped checks.
COUNT = {"2025-11-25": 84, "2026-07-28": 194}
# Checks that the suite also passes over where a server does not do the thing at all. Ours does.
DONE = {
    "2025-11-25": {
        ("server-session-lifecycle", "server-session-terminated-returns-404"),
        ("server-sse-polling", "server-sse-disconnect-resume"),
    },
    "2026-07-28": {
        ("server-stateless", "sep-2575-server-sends-prompts-list-changed-on-subscription"),
        ("server-stateless", "sep-2575-server-sends-tools-list-changed-on-subscription"),
    },
}


@pytest.mark.long
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_conformance(revision: str, suite: list[str], tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with conformance.serving("everything_mcp", conformance.paths(), log) as url:
        checks = conformance.judge(suite, url, revision, tmp_path / "results")
    faults = [str(check) for check in checks if _is_fault(check)]
    assert not faults, "\n".join(
        [f"{len(faults)} of {len(checks)} checks failed:", *faults, "", log.read_text()[-5000:]]
    )
    assert len(checks) >= COUNT[revision]
    assert UNSCORED[revision] <= {check.scenario for check in checks}
    assert DONE[revision] <= {(check.scenario, check.id) for check in checks if check.status == "SUCCESS"}


SKILLS = {"sep-2640-skills-enumeration": 30, "sep-2640-skills-manifest": 6, "sep-2640-skills-directory": 7}
"""The scenarios of SEP-2640, an extension that no revision requires, and how many checks of them pass at least."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the server that has everything."""
    log = tmp_path_factory.mktemp("everything") / "server.log"
    with conformance.serving("everything_mcp", conformance.paths(), log) as url:
        yield url


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "revision"),
    amounts.sample(
        [(scenario, revision) for scenario in reversed(SKILLS) for revision in ("2026-07-28", "2025-11-25")], 1
    ),
)
def test_skills(scenario: str, revision: str, suite: list[str], everything: str, tmp_path: Path) -> None:
    checks = conformance.judge_one(suite, everything, revision, scenario, tmp_path / scenario)
    assert not [str(check) for check in checks if _is_fault(check)]
    assert len([check for check in checks if check.status == "SUCCESS"]) >= SKILLS[scenario]


def _is_fault(check: Check) -> bool:
    return check.status not in conformance.FINE


def test_a_result_is_read(tmp_path: Path) -> None:
    _write(tmp_path, "ping", [("ping", "SUCCESS", None), ("wire", "FAILURE", "no result")])
    _write(tmp_path, "server-sse-polling", [("retry", "WARNING", None), ("event", "INFO", None)])
    _write(tmp_path, "tasks-lifecycle", [("tasks", "FAILURE", "no tasks")])
    _write(tmp_path, "empty", [])
    checks = conformance.read(tmp_path, ["ping", "server-sse-polling", "tasks-lifecycle", "empty", "broken-down"])
    assert len(checks) == 7
    assert [str(check) for check in checks if _is_fault(check)] == [
        "ping: wire: FAILURE: no result",
        "server-sse-polling: retry: WARNING: about retry",
        "tasks-lifecycle: tasks: FAILURE: no tasks",
        "empty: result: FAILURE: the scenario gave no result",
        "broken-down: result: FAILURE: the scenario gave no result",
    ]


def test_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with pytest.raises(NotRunError, match="No module named nowhere_mcp"), conformance.serving("nowhere_mcp", [], log):
        pass


def _write(folder: Path, scenario: str, checks: list[tuple[str, str, str | None]]) -> None:
    result = folder / f"server-{scenario}-2026-07-28T12-00-00-000Z"
    result.mkdir()
    found = [
        {"id": name, "status": status, "description": f"about {name}", **({"errorMessage": message} if message else {})}
        for name, status, message in checks
    ]
    (result / "checks.json").write_text(json.dumps(found))
