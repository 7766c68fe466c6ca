"""Reads skills from a connected server (SEP-2640) and verifies each file."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from mcp_types import (
    PaginatedRequestParams,
    PaginatedResult,
    ReadResourceRequest,
    ReadResourceResult,
    Request,
    RequestParams,
    Result,
    TextResourceContents,
)
from pydantic import BaseModel

from ...extras import Extra
from ...values.terminal import replace_controls

if TYPE_CHECKING:
    from ..core.binding import Binding

_FRONTMATTER: Final = re.compile(r"---[ \t]*\r?\n((?:[^\n]*\n)*?)---[ \t]*\r?(?:\n|\Z)")


class SkillError(Exception):
    """A skill's file does not match the skill's entry, so the file cannot be trusted."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(replace_controls(f"{uri} cannot be trusted: {why}"))
        self.uri = uri


class SkillFile(BaseModel):
    """A skill's file, as described in the skill's entry."""

    uri: str
    digest: str
    size: int


class Skill(BaseModel):
    """A skill's entry, which an application shows before it loads the skill.

    Attributes:
        uri: The URI of the skill's `SKILL.md`.
        frontmatter: The frontmatter of the skill's `SKILL.md`.
        resources: All files of the skill.
    """

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillFile]


class _GetParams(RequestParams):
    uri: str


class _ListRequest(Request[PaginatedRequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"
    params: PaginatedRequestParams


class _GetRequest(Request[_GetParams, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"
    params: _GetParams


class _ListResult(PaginatedResult):
    skills: list[Skill]


class _GetResult(Result):
    skill: Skill


async def list_skills(client: Binding) -> list[Skill]:
    """Return the entries for all skills.

    Raises:
        MCPError: The request failed, the server has no skills, or the list never ends.
    """
    session, _, options = client.__stubwright__

    async def fetch(cursor: str | None) -> _ListResult:
        page: _ListResult = await session.client.session.send_request(
            _ListRequest(params=PaginatedRequestParams(cursor=cursor)), _ListResult
        )
        return page

    return [skill async for page in session.fetch_pages(fetch, options) for skill in page.skills]


async def get_skill(client: Binding, uri: str) -> Skill:
    """Return the entry for the skill whose `SKILL.md` has this URI; raises the same exceptions as `list_skills`."""
    session, _, options = client.__stubwright__
    return (await session.send(_GetRequest(params=_GetParams(uri=uri)), _GetResult, options)).skill


async def read_skill(client: Binding, skill: Skill, uri: str | None = None) -> bytes:
    """Read a skill's file, and verify the file's size and digest against the skill's entry.

    Args:
        client: A connected client.
        skill: The skill's entry.
        uri: The file's URI; by default `SKILL.md`, whose frontmatter must also match the entry's.

    Raises:
        MCPError: The resource cannot be read.
        SkillError: The entry does not list the file, or the file does not match the entry.
        MissingExtraError: The extra `skills`, which parses frontmatter, is not installed.
    """
    address = skill.uri if uri is None else uri
    described = next((file for file in skill.resources if file.uri == address), None)
    if described is None:
        raise SkillError(address, f"it is not a file in {skill.uri}")
    session, _, options = client.__stubwright__
    result = await session.send_rounds(ReadResourceRequest, {"uri": address}, ReadResourceResult, options)
    contents = result.contents
    if len(contents) != 1:
        raise SkillError(address, f"the server sent {len(contents)} contents instead of one")
    (content,) = contents
    try:
        data = content.text.encode() if isinstance(content, TextResourceContents) else base64.b64decode(content.blob)
    except ValueError as error:
        raise SkillError(address, str(error)) from None
    if len(data) != described.size:
        raise SkillError(address, f"it has {len(data)} bytes instead of {described.size}")
    if described.digest != f"sha256:{hashlib.sha256(data).hexdigest()}":
        raise SkillError(address, "its SHA-256 digest differs")
    if address == skill.uri and not _has_frontmatter(data, skill.frontmatter):
        raise SkillError(address, "its frontmatter differs from the entry's")
    return data


def _has_frontmatter(data: bytes, expected: dict[str, Any]) -> bool:
    with Extra("skills", "reading a skill"):
        import yaml

    try:
        match = _FRONTMATTER.match(data.decode("utf-8-sig"))
        return match is not None and _is_equal(yaml.compose(match[1], yaml.SafeLoader), expected)
    except (UnicodeDecodeError, RecursionError, yaml.YAMLError):
        return False


def _is_equal(node: Any, value: object) -> bool:
    """Return whether a YAML node equals a JSON value in every YAML version.

    YAML 1.1 and YAML 1.2 infer different types from unquoted scalars.
    """
    if node is None:
        return False
    if isinstance(value, dict):
        if node.id != "mapping" or len(node.value) != len(value):
            return False
        children = {key.value: child for key, child in node.value if key.id == "scalar"}
        return children.keys() == value.keys() and all(_is_equal(children[key], value[key]) for key in value)
    if isinstance(value, list):
        return node.id == "sequence" and len(node.value) == len(value) and all(map(_is_equal, node.value, value))
    if node.id != "scalar":
        return False
    text: str = node.value
    if isinstance(value, str):
        return text == value
    return node.style is None and _parses_as(text, value)


def _parses_as(text: str, value: object) -> bool:
    """Return whether any YAML version reads an unquoted scalar as `value`, which is null, a boolean or a number."""
    if value is None:
        return text in ("", "~", "null", "Null", "NULL")
    if isinstance(value, bool):
        return text.lower() in (("true", "yes", "on") if value else ("false", "no", "off"))
    try:
        return float(text) == value
    except ValueError:
        return False
