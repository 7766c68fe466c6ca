"""Base URLs with variables: valid values from the environment, and errors for invalid values."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import forked
import prompt_ends
from fake_api import api
from packages import generate, imported, manifest, tool
from stubwright_runtime.http.servers import fill_base_url

ends_are_prompt = prompt_ends.ends_are_prompt

REGION = {"env": "S_REGION", "default": "eu", "enum": ["eu", "us-1"]}
ANY = {"env": "S_TENANT", "default": "a.b"}


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "https://eu.example.com/a.b"),
        ({"S_REGION": "us-1", "S_TENANT": "x_~1"}, "https://us-1.example.com/x_~1"),
        ({"S_REGION": "", "S_TENANT": ""}, "https://eu.example.com/a.b"),
    ],
)
def test_variables_are_filled_in(environment: dict[str, str], url: str) -> None:
    said = {"baseUrl": "https://{region}.example.com/{tenant}", "variables": {"region": REGION, "tenant": ANY}}
    assert fill_base_url(said, environment) == url


@pytest.mark.parametrize(
    "value",
    [
        *("evil.example/", "evil.example#", "evil.example?", "me@evil.example", "a:1", "..", ".", "a/../b", "a b"),
        *("a\nb", "%2e%2e", "é", "a\\b", "{x}", "[::1]", " ", "us-1\n"),
    ],
)
def test_a_variable_stays_in_its_place(value: str) -> None:
    for base, variable in (
        ("https://{v}.example.com", REGION),
        ("https://{v}.example.com", ANY),
        ("https://h/{v}", ANY),
    ):
        with pytest.raises(ValueError, match=f"^{variable['env']} is "):
            fill_base_url({"baseUrl": base, "variables": {"v": variable}}, {str(variable["env"]): value})


def test_what_comes_out_is_a_base_url() -> None:
    said = {"baseUrl": "http://127.0.0.1:{port}", "variables": {"port": {"env": "S_PORT", "default": "80"}}}
    assert fill_base_url(said, {"S_PORT": "8080"}) == "http://127.0.0.1:8080"
    for port in ("x", "0", "99999"):
        with pytest.raises(ValueError, match=f"S_PORT: 'http://127.0.0.1:{port}' is not a base URL"):
            fill_base_url(said, {"S_PORT": port})


def package(folder: Path, base: str, **variables: Any) -> str:
    said = {"baseUrl": base, "baseUrlEnv": "S_BASE", "variables": variables}
    get = tool("get", {}, stubwright={"http": {"api": "fake", "url": "/x"}})
    return generate(folder, manifest([get], apis={"fake": said}))


def test_calls_go_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with api(lambda asked: asked.path) as fake:
        name = package(
            tmp_path, f"{fake.url}/{{version}}", version={"env": "S_VERSION", "default": "v1", "enum": ["v1", "v2"]}
        )
        with imported(tmp_path, name) as module:

            async def call() -> str:
                async with module.SampleClient.connect(module.build_server(None)) as client:
                    (block,) = await client.get()
                    return str(block.text)

            assert asyncio.run(call()) == "/v1/x"
            monkeypatch.setenv("S_VERSION", "v2")
            assert asyncio.run(call()) == "/v2/x"
            monkeypatch.setenv("S_VERSION", "v3")
            monkeypatch.setenv("S_BASE", f"{fake.url}/mine")  # which replaces the whole
            assert asyncio.run(call()) == "/mine/x"


@pytest.mark.parametrize("http", [[], ["--http", "127.0.0.1:0"]])
def test_a_server_does_not_start_with_what_a_variable_cannot_be(http: list[str], tmp_path: Path) -> None:
    name = package(tmp_path, "https://{region}.example.com", region=REGION)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "S_REGION": "moon"}
    done = subprocess.run(
        [*forked.interpreter(), "-m", name, *http],
        env=environment,
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "S_REGION is 'moon'; it must be one of 'eu', 'us-1'" in done.stderr
    assert done.stdout == ""
