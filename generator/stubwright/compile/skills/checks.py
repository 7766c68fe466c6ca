"""Checks the format of skills (SEP-2640; Agent Skills, https://agentskills.io/specification)."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from stubwright.compile.skills import folders
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import ADD_QUOTES, did_you_mean
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.compile.source import Skill
    from stubwright.ir import Json

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MOST: Final[Mapping[str, int]] = {"name": 64, "description": 1024, "compatibility": 500}
_REQUIRED: Final = ("name", "description")
_TEXTS: Final = ("name", "description", "license", "compatibility", "allowed-tools")
_RESERVED: Final = "io.modelcontextprotocol/"

_CODE: Final = re.compile(r"^(`{3,}+|~{3,}+).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LONGEST: Final = 256 * 1024
"""In a longer `SKILL.md`, links are not checked: the search takes more than linear time."""

_LINK: Final = re.compile(r"(?<!\\)\]\(\s*<?(?P<target>[^\s()<>]+)")
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[#/]")


def check(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check each skill, and that skill and resource URIs are unique."""
    uris: dict[str, Skill] = {}
    names: dict[str, Skill] = {}
    by_name: dict[str, Skill] = {}
    for skill in resolved.bundle.skills:
        if by_name.setdefault(skill.document.path, skill) is not skill:
            message = f"`{skill.document.path}` is already in another entry of `skills`"
            yield Diagnostic("SW210", message, skill.place, "remove one of the entries")
            continue
        yield from _check_frontmatter(skill)
        yield from _check_links(skill)
        if (other := uris.setdefault(skill.uri, skill)) is not skill:
            message = f"`{skill.document.path}` and `{other.document.path}` are both `{skill.uri}`"
            yield Diagnostic("SW210", message, skill.place, "rename one of the folders, and update its `name`")
        elif (other := names.setdefault(skill.name, skill)) is not skill:
            message = f"`{other.document.path}` is also named `{skill.name}`, so users cannot tell the skills apart"
            place = Place(skill.document.path, ("name",))
            yield Diagnostic("SW348", message, place, "rename one of the folders, and update its `name`")
    served = {uri for skill in resolved.bundle.skills for uri in skill.uris}
    for resource in resolved.primitives[vocabulary.RESOURCES]:
        if resource.key in served:
            message = f"the resource `{resource.key}` is already a file of a skill"
            yield Diagnostic("SW210", message, resource.place / "uri", "remove the resource")


def _check_frontmatter(skill: Skill) -> Iterator[Diagnostic]:
    """Check the frontmatter of a skill (Agent Skills, "Frontmatter")."""
    fields: Mapping[str, Json] = skill.document.value
    place = Place(skill.document.path)
    for key in _REQUIRED:
        if key not in fields:
            yield Diagnostic("SW276", f"the skill has no `{key}`", place, f"add `{key}:`")
    for key in _TEXTS:
        value = "" if fields.get(key) is None else fields[key]
        if not isinstance(value, str):
            yield Diagnostic("SW276", f"`{key}` is not a string", place / key, ADD_QUOTES)
        elif key in fields and not value.strip():
            fix = "write a value" if key in _REQUIRED else "write a value, or remove the key"
            yield Diagnostic("SW276", f"`{key}` is empty", place / key, fix)
        elif len(value) > _MOST.get(key, len(value)):
            message = f"`{key}` has {len(value):,} characters; the maximum is {_MOST[key]:,}"
            yield Diagnostic("SW276", message, place / key, "shorten it")
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        yield Diagnostic(
            "SW276", "`metadata` is not a mapping", place / "metadata", "write `key: value` lines under it"
        )
    else:
        for key, value in metadata.items():
            if not isinstance(value, str):
                at = place / "metadata" / key
                yield Diagnostic("SW276", f"`{key}` of `metadata` is not a string", at, ADD_QUOTES)
            if key.startswith(_RESERVED):
                at = (place / "metadata" / key).point_at_key()
                yield Diagnostic("SW276", f"`{key}` is reserved for MCP", at, "use your own prefix")
    if isinstance(name := fields.get("name"), str) and name.strip():
        yield from _check_name(name, posixpath.basename(skill.path), place / "name")


def _check_name(name: str, folder: str, place: Place) -> Iterator[Diagnostic]:
    if not _NAME.fullmatch(name):
        message = f"`{name}` is not a valid skill name"
        yield Diagnostic("SW276", message, place, "use lower-case letters, digits, and single hyphens between them")
    elif name != folder:
        message = f"the skill is named `{name}`, but its folder is `{folder}`"
        yield Diagnostic("SW276", message, place, "rename the folder or the skill: hosts look it up by folder")


def _check_links(skill: Skill) -> Iterator[Diagnostic]:
    """Warn about links in `SKILL.md` to missing files, which models would try to read."""
    text = skill.document.text
    if len(text) > _LONGEST:
        return
    body = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    known = {*skill.files, *(step for path in skill.files for step in _list_parents(path))}
    for link in _LINK.finditer(body, len(folders.split(text))):
        target = unquote(link["target"].partition("#")[0].partition("?")[0])
        if _ELSEWHERE.match(link["target"]) or not target or posixpath.normpath(target) in known:
            continue
        message = f"the skill links to `{target}`, but does not contain that file"
        fix = did_you_mean(posixpath.normpath(target), [*skill.files], "files")
        yield Diagnostic(
            "SW349", message, skill.document.lines.find_span(skill.document.path, *link.span("target")), fix
        )


def _list_parents(path: str) -> Iterator[str]:
    while path:
        path = posixpath.dirname(path)
        yield path or "."
