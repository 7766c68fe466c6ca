"""Odd schemas of properties and results, through a running server and its typed client."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import odd
from corpus import Call, Echo
from corpus_calls import STATELESS, check_raw, check_typed, output
from instances import draw
from packages import check, generate, imported, manifest
from server_fixture import exchange
from stubwright.jsonschema import dialects
from stubwright_runtime.schema.numbers import make_exact_instance, make_exact_schema
from suite import VALUE, rebase


def tools() -> list[dict[str, Any]]:
    """A tool for each schema."""
    made = []
    for number, schema in enumerate(odd.SCHEMAS):
        dialect = dialects.find_dialect(schema)
        assert dialect is not None
        below = {"type": "object", "properties": {VALUE: rebase(schema, dialect)}}
        made.append(
            {
                "name": f"odd_{number}",
                "description": json.dumps(schema)[:60],
                "inputSchema": {"$schema": dialect.uri, **below},
                "outputSchema": schema if isinstance(schema, dict) else {},
            }
        )
    return made


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the name of the package of all these tools."""
    folder = tmp_path_factory.mktemp("odd")
    value = manifest(tools(), name="odd")
    assert [found for found in check(folder, value) if found.severity == "error"] == []
    return folder, generate(folder, value)


def tried(schema: Any, name: str) -> tuple[list[Any], list[Any]]:
    """Values that a schema accepts, and values that it does not."""
    exact = jsonschema_rs.validator_for(make_exact_schema(schema))
    verdicts = [(value, exact.is_valid(make_exact_instance(value))) for value in [*odd.VALUES, *draw(schema, name, 10)]]
    return [value for value, is_valid in verdicts if is_valid], [value for value, is_valid in verdicts if not is_valid]


@pytest.mark.long
def test_they_are_decided_right_and_nothing_is_lost(package: tuple[Path, str]) -> None:
    folder, name = package
    todo: list[Call] = []
    refused: list[tuple[str, dict[str, Any]]] = []
    for tool in tools():
        good, bad = tried(tool["outputSchema"], tool["name"])
        todo += [Call(tool["name"], {VALUE: value}, True, value) for value in good]
        refused += [(tool["name"], {VALUE: value}) for value in bad[:20]]
    with imported(folder, name) as module:
        assert asyncio.run(check_raw(module, todo)) == []
        assert asyncio.run(check_typed(module, module.OddClient, todo)) == []
        assert asyncio.run(accepted(module, refused)) == []
    assert len(todo) > 2_000
    assert len(refused) > 2_000


async def accepted(module: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Those of the calls that a server does not refuse."""
    echo = Echo(module)
    requests = [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls]
    answers = await exchange(module.build_server(echo), STATELESS, *requests)
    assert echo.seen is None
    return [
        f"{name}({arguments}) gave {answer}"
        for (name, arguments), answer in zip(calls, answers, strict=True)
        if answer.get("isError") is not True
    ]


@pytest.mark.long
def test_mypy_finds_no_error(package: tuple[Path, str], mypy: list[str]) -> None:
    assert "Success" in output([*mypy[2:], "--python-version=3.11", package[1]], package[0])


@pytest.mark.long
def test_pyright_finds_no_error(package: tuple[Path, str]) -> None:
    pytest.importorskip("pyright")
    output(["pyright", f"--pythonpath={sys.executable}", f"{package[1]}/models", f"{package[1]}/client.py"], package[0])
