"""The skills of a server, read by a client (SEP-2640). The conformance suite has four more scenarios."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from packages import generate, imported, manifest, tool
from stubwright_runtime import MCPError, Skill, SkillError, SkillFile, get_skill, list_skills, read_skill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

pytestmark = pytest.mark.anyio

ROOT = "skill://refunds"
TEXT = """---
name: refunds
description: "Pays back: to all."
metadata: {version: "1.0"}
---
See `stamp.png`.
"""
ODD = """---
text: no
quoted: "1"
empty:
number: 1.50
open: yes
nested: {tags: [a, b]}
---
"""
FIELDS: dict[str, Any] = {
    "text": "no",
    "quoted": "1",
    "empty": None,
    "number": 1.5,
    "open": True,
    "nested": {"tags": ["a", "b"]},
}


class Desk:
    """Serve a skill that the compiler would refuse."""

    def show(self, args: Any, ctx: object) -> str:
        return ""

    def read_odd(self, ctx: object) -> str:
        return ODD


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    top = tmp_path_factory.mktemp("desk")
    folder = top / "skills" / "refunds"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT)
    (folder / "stamp.png").write_bytes(b"\x89PNG\0")
    odd = {"uri": "skill://odd/SKILL.md", "name": "odd"}
    value = manifest([tool("show")], name="desk", skills=["skills"], resources=[odd])
    with imported(top, generate(top, value)) as module:
        yield module


@pytest.fixture
async def client(package: ModuleType) -> AsyncIterator[Any]:
    async with package.DeskClient.connect(package.build_server(Desk())) as connected:
        yield connected


async def test_files_that_fit_their_entry_are_read(client: Any) -> None:
    (skill,) = await list_skills(client)
    assert skill == await get_skill(client, f"{ROOT}/SKILL.md")
    assert skill.frontmatter["description"] == "Pays back: to all."
    assert (await read_skill(client, skill)).decode() == TEXT
    assert await read_skill(client, skill, f"{ROOT}/stamp.png") == b"\x89PNG\0"
    with pytest.raises(MCPError, match="Skill not found"):
        await get_skill(client, f"{ROOT}/other/SKILL.md")


def _change(skill: Skill, **changes: Any) -> Skill:
    files = [
        file.model_copy(update={key: changes[key] for key in changes if key in ("size", "digest")})
        for file in skill.resources
    ]
    return skill.model_copy(update={"resources": files, "frontmatter": changes.get("frontmatter", skill.frontmatter)})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"size": 3}, "bytes instead of 3$"),
        ({"digest": "sha256:00"}, "its SHA-256 digest differs$"),
        ({"digest": "md5:00"}, "its SHA-256 digest differs$"),
        ({"frontmatter": {"name": "refunds"}}, "its frontmatter differs from the entry's$"),
    ],
)
async def test_files_that_differ_from_their_entry_are_refused(client: Any, changes: dict[str, Any], why: str) -> None:
    (skill,) = await list_skills(client)
    with pytest.raises(SkillError, match=why):
        await read_skill(client, _change(skill, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "yes"},
        {"text": None},
        {"quoted": 1},
        {"empty": False},
        {"number": 1},
        {"number": True},
        {"open": False},
        {"nested": {"tags": ["a"]}},
        {"nested": {"tags": "a"}},
        {"nested": {}},
        {"nested": []},
        {"more": "1"},
    ],
)
async def test_each_field_of_the_frontmatter_is_compared(client: Any, changes: dict[str, Any]) -> None:
    file = SkillFile(uri="skill://odd/SKILL.md", digest=f"sha256:{sha256(ODD.encode()).hexdigest()}", size=len(ODD))
    skill = Skill(uri=file.uri, frontmatter=FIELDS, resources=[file])
    assert await read_skill(client, skill) == ODD.encode()
    with pytest.raises(SkillError, match="its frontmatter differs"):
        await read_skill(client, skill.model_copy(update={"frontmatter": {**FIELDS, **changes}}))


async def test_a_file_outside_of_the_skill_is_not_requested(client: Any) -> None:
    (skill,) = await list_skills(client)
    with pytest.raises(SkillError, match=r"^skill://other/SKILL\.md cannot be trusted: it is not a file in"):
        await read_skill(client, skill, "skill://other/SKILL.md")
