"""Skills that hosts load (SEP-2640): announced, listed with digests, and read, on every path of a message."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from packages import generate, imported, manifest, tool
from ways import REVISIONS, WAYS, Opening

pytestmark = pytest.mark.anyio

SKILLS = "io.modelcontextprotocol/skills"
REFUNDS, GIT, INNER = "skill://acme/refunds", "skill://git-workflow", "skill://acme/refunds/inner"
FILES = {
    "acme/refunds/SKILL.md": b"---\nname: refunds\ndescription: Refunds.\nmetadata: {version: '1'}\n---\nSee `mail`.\n",
    "acme/refunds/mail/eu/a b.md": "\ufeffDear Jürgen\r\n".encode(),
    "acme/refunds/mail/stamp.png": b"\x89PNG\0",
    "acme/refunds/inner/SKILL.md": b"---\nname: inner\ndescription: Inner.\n---\n",
    "git-workflow/SKILL.md": b"---\r\nname: git-workflow\r\ndescription: Git.\r\n---\r\n",
    "git-workflow/.hidden": b"secret",
    "git-workflow/__pycache__/a.pyc": b"\0",
}


class Desk:
    async def show(self, args: Any, ctx: Any) -> str:
        await ctx.resources.disable(f"{GIT}/SKILL.md")
        return "hidden"


def write(folder: Path) -> None:
    for name, data in FILES.items():
        path = folder / "skills" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.fixture
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    write(tmp_path)
    more = getattr(request, "param", {})
    value = manifest([tool("show")], name="desk", skills=["skills"], cache={"ttl": "5m", "scope": "public"}, **more)
    with imported(tmp_path, generate(tmp_path, value)) as package:
        yield package


@REVISIONS
@WAYS
async def test_skills_are_announced_and_listed(desk: ModuleType, opened: Opening, revision: str) -> None:
    async with opened(desk, Desk(), revision) as wire:
        offered = wire.offered or (await wire("server/discover"))["capabilities"]
        assert offered["extensions"] == {SKILLS: {"directoryRead": True}}
        assert "resources" in offered
        listed = await wire("skills/list")
        assert [skill["uri"] for skill in listed["skills"]] == [f"{each}/SKILL.md" for each in (REFUNDS, INNER, GIT)]
        assert [skill["frontmatter"] for skill in listed["skills"]] == [
            {"name": "refunds", "description": "Refunds.", "metadata": {"version": "1"}},
            {"name": "inner", "description": "Inner."},
            {"name": "git-workflow", "description": "Git."},
        ]
        refunds, inner, git = listed["skills"]
        assert {each["uri"] for each in refunds["resources"]} == {
            f"{REFUNDS}/SKILL.md",
            f"{REFUNDS}/mail/eu/a%20b.md",
            f"{REFUNDS}/mail/stamp.png",
            f"{INNER}/SKILL.md",
        }
        assert [each["uri"] for each in git["resources"]] == [f"{GIT}/SKILL.md"]
        assert inner["resources"][0] in refunds["resources"]
        got = await wire("skills/get", uri=f"{REFUNDS}/SKILL.md")
        assert got["skill"] == refunds
        hints = {"ttlMs": 300_000, "cacheScope": "public", "resultType": "complete"}
        is_stateless = revision >= "2026-07-28"
        for result in (listed, got):
            assert {key: result[key] for key in hints if key in result} == (hints if is_stateless else {})


@REVISIONS
@WAYS
async def test_a_file_that_is_read_has_its_digest_and_size(desk: ModuleType, opened: Opening, revision: str) -> None:
    async with opened(desk, Desk(), revision) as wire:
        for skill in (await wire("skills/list"))["skills"]:
            for file in skill["resources"]:
                [content] = (await wire("resources/read", uri=file["uri"]))["contents"]
                data = content["text"].encode() if "text" in content else base64.b64decode(content["blob"])
                assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
                assert file["size"] == len(data)
        listed = {each["uri"]: each for each in (await wire("resources/list"))["resources"]}
        assert listed[f"{REFUNDS}/SKILL.md"] == {
            "uri": f"{REFUNDS}/SKILL.md",
            "name": "refunds",
            "description": "Refunds.",
            "mimeType": "text/markdown",
            "size": len(FILES["acme/refunds/SKILL.md"]),
        }
        assert listed[f"{REFUNDS}/mail/stamp.png"]["mimeType"] == "image/png"
        assert not [uri for uri in listed if "hidden" in uri or "pycache" in uri]


@REVISIONS
@WAYS
async def test_folders_are_read(desk: ModuleType, opened: Opening, revision: str) -> None:
    async with opened(desk, Desk(), revision) as wire:
        root = await wire("resources/directory/read", uri=REFUNDS)
        assert [(each["uri"], each["mimeType"]) for each in root["resources"]] == [
            (f"{REFUNDS}/SKILL.md", "text/markdown"),
            (f"{REFUNDS}/inner", "inode/directory"),
            (f"{REFUNDS}/mail", "inode/directory"),
        ]
        mail = await wire("resources/directory/read", uri=f"{REFUNDS}/mail")
        assert [each["name"] for each in mail["resources"]] == ["eu", "stamp.png"]
        for uri in (f"{REFUNDS}/SKILL.md", f"{REFUNDS}/", "skill://acme", "skill://nothing", ""):
            assert (await wire("resources/directory/read", uri=uri))["error"]["code"] == -32602


@REVISIONS
@WAYS
async def test_what_is_no_skill_is_refused(desk: ModuleType, opened: Opening, revision: str) -> None:
    async with opened(desk, Desk(), revision) as wire:
        for uri in (f"{REFUNDS}/mail/stamp.png", REFUNDS, "skill://nothing/SKILL.md"):
            error = (await wire("skills/get", uri=uri))["error"]
            assert (error["code"], error["message"]) == (-32602, f"Skill not found: {uri}")
        assert (await wire("skills/get"))["error"]["code"] == -32602
        assert (await wire("skills/list", cursor="nonsense"))["error"]["message"] == "Invalid cursor"


@REVISIONS
@WAYS
async def test_a_skill_that_is_switched_off_is_not_there(desk: ModuleType, opened: Opening, revision: str) -> None:
    async with opened(desk, Desk(), revision) as wire:
        await wire("tools/call", name="show", arguments={})
        assert len((await wire("skills/list"))["skills"]) == 2
        assert "error" in await wire("skills/get", uri=f"{GIT}/SKILL.md")
        assert "error" in await wire("resources/directory/read", uri=GIT)


@REVISIONS
@WAYS
@pytest.mark.parametrize("desk", [{"pageSize": 2}], indirect=True)
async def test_skills_come_in_pages(desk: ModuleType, opened: Opening, revision: str) -> None:
    async with opened(desk, Desk(), revision) as wire:
        directory: dict[str, Any] = {"uri": REFUNDS}
        for method, name, params in (
            ("skills/list", "skills", {}),
            ("resources/directory/read", "resources", directory),
        ):
            first = await wire(method, **params)
            second = await wire(method, cursor=first["nextCursor"], **params)
            assert [len(page[name]) for page in (first, second)] == [2, 1]
            assert "nextCursor" not in second


@REVISIONS
@WAYS
async def test_a_server_without_skills_knows_no_such_method(tmp_path: Path, opened: Opening, revision: str) -> None:
    with imported(tmp_path, generate(tmp_path, manifest([tool("show")], name="bare"))) as package:
        async with opened(package, Desk(), revision) as wire:
            offered = wire.offered or (await wire("server/discover"))["capabilities"]
            assert "extensions" not in offered
            assert (await wire("skills/list"))["error"]["code"] == -32601
