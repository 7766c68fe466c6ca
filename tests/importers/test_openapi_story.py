"""The walkthrough in docs/openapi.md: its commands and files, taken from the page, have the documented results."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import large_api
import walkthrough
from command_line import stubwright
from fake_api import Answer, Asked, api
from packages import imported

TITLE = "## From 500 operations to a server of 20 tools"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_IDENTITY = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def blocks() -> list[tuple[str, str]]:
    """The blocks of code of the story: their languages and texts."""
    page = (ROOT / "docs" / "openapi.md").read_text("utf-8")
    return _BLOCK.findall(page.partition(TITLE)[2].partition("\n## ")[0])


def steps(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Return the commands of a block, each with the output lines on the page."""
    for command, printed in walkthrough.commands(text):
        yield shlex.split(command), printed.splitlines()


def run(command: list[str], folder: Path) -> tuple[int, str]:
    if command[0] == "stubwright":
        done = stubwright(*command[1:], cwd=folder)
    else:
        environment = {**os.environ, **_IDENTITY}
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout + done.stderr


def do(text: str, folder: Path) -> list[tuple[str, int]]:
    """Run the commands of a block; return the verbs and their exit statuses."""
    ended = []
    for command, said in steps(text):
        status, output = run(command, folder)
        for line in said:
            assert all(part.strip() in output for part in line.split("…")), f"{command}: no {line!r} in:\n{output}"
        ended.append((" ".join(command[:2]), status))
    return ended


def undeclared(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without a declaration of authentication."""
    del document["security"], document["components"]["securitySchemes"]
    return document


@pytest.mark.long
def test_story(tmp_path: Path) -> None:
    told = blocks()
    assert [kind for kind, _ in told] == ["console", "yaml", "console", "python", "console", "console"]
    begin, own, release, use, refresh, again = [text for _, text in told]
    document = undeclared(large_api.document())
    operations = [key for item in document["paths"].values() for key in item if key != "parameters"]
    assert len(operations) == 500
    (tmp_path / "acme.json").write_text(json.dumps(document))
    assert run(["git", "init", "-q"], tmp_path)[0] == 0
    assert do(begin, tmp_path) == [("stubwright import", 0)]
    place = tmp_path / own.splitlines()[0].removeprefix("# ")
    place.write_text(own)
    assert {status for _, status in do(release, tmp_path)} == {0}
    fragment = tmp_path / "specs" / "imported" / "acme.yaml"
    second = shlex.split(fragment.read_text("utf-8").splitlines()[1].removeprefix("# "))
    assert sorted(second) == sorted(next(steps(begin))[0]), "the second line is the command of the import"
    assert ".list_customer.pages()" in use
    assert calls(tmp_path) == ["A", "B", "C"]

    (tmp_path / "acme.json").write_text(json.dumps(undeclared(large_api.document(changed=True))))
    assert run(["stubwright", "refresh", "--check", "specs/acme.yaml"], tmp_path)[0] == 1
    assert do(refresh, tmp_path) == [("stubwright refresh", 0)]
    assert run(["stubwright", "refresh", "--check", "specs/acme.yaml"], tmp_path)[0] == 0
    assert run(["stubwright", "diff", "git:v1.0.0", "specs/acme.yaml"], tmp_path)[0] == 1
    place.write_text(own.replace("version: 1.0.0", "version: 2.0.0"))
    assert {status for _, status in do(again, tmp_path)} == {0}
    assert run(["stubwright", "diff", "git:v2.0.0", "specs/acme.yaml"], tmp_path)[0] == 0
    assert run(["git", "tag"], tmp_path)[1].split() == ["v1.0.0", "v2.0.0"]


def calls(folder: Path) -> list[str]:
    """The names of all customers, of two pages of an API that wants the credential, and knows one more field."""

    def answer(asked: Asked) -> Answer:
        if asked.headers.get("authorization") != "Bearer kept":
            return 401, {}
        names = "C" if "cursor=more" in asked.query else "AB"
        data = [{"id": name.lower(), "name": name, "status": "open", "notes": ["long"]} for name in names]
        return {"data": data, **({} if names == "C" else {"next_cursor": "more"})}

    async def go() -> list[str]:
        async with package.AcmeClient.connect(package.build_server()) as acme:
            listed = (await acme.raw.list_tools()).tools
            assert len(listed) == 20
            assert (
                next(one for one in listed if one.name == "list_customer").description == "Customers, the newest first."
            )
            return [customer.name async for customer in acme.list_customer.pages()]

    with api(answer) as fake, imported(folder / "generated", "acme_mcp") as package:
        os.environ.update(ACME_BASE_URL=fake.url, ACME_TOKEN="kept")
        try:
            return asyncio.run(go())
        finally:
            del os.environ["ACME_BASE_URL"], os.environ["ACME_TOKEN"]
