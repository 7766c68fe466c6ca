"""What each tool is made from, and what was found clean before: the same tool in the same manifest is clean again.

Takes an assembly, and what the lock keeps of the last run; gives digests, and the part of the assembly that may have
become wrong. The lock's word is taken only where its digests prove that nobody changed them.
"""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolwright import lock
from toolwright.assembly import meant, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolwright.assembly import Assembly, Declared
    from toolwright.ir import Json


@dataclass(frozen=True, slots=True)
class Digests:
    """Of each tool of an assembly, in its order, what it is made from; and of all that stands around the tools."""

    tools: tuple[str, ...]
    around: str

    def clean(self, tools: Mapping[str, str]) -> str:
        """What the lock says where these tools were found clean, with this around them."""
        return lock.digest(to_json([self.around, sorted(tools.items())]))


def digests(assembly: Assembly, made_by: Sequence[str]) -> Digests:
    """The digests of an assembly; `made_by` is what else goes into all that is generated, such as the generator."""
    head = hashlib.sha256(to_json([*made_by, assembly.entry.get("formats"), assembly.entry.get("policy")]))
    folder = posixpath.dirname(assembly.bundle.entry)
    files = {path: posixpath.relpath(path, folder or ".") for path in assembly.bundle.documents}
    names = frozenset(tool.name for tool in assembly.tools)
    shared = lock.digest(to_json([[files[key.file], key.name, found.schema] for key, found in assembly.shared.items()]))

    def digest(tool: Declared) -> str:
        parts: list[Json] = [tool.name, files[tool.place.file], tool.ours, _use(tool, names)]
        if any(found.shared() for _, found in assembly.schemas(tool)):
            parts.append(shared)
        made = head.copy()
        made.update(tool.data)
        made.update(to_json(parts))
        return f"sha256:{made.hexdigest()}"

    around = [
        *made_by,
        [(files[fragment.path], fragment.prefix, fragment.kind) for fragment in assembly.bundle.fragments],
        [(files[path], _around(document.value)) for path, document in assembly.bundle.documents.items()],
    ]
    return Digests(tuple(map(digest, assembly.tools)), lock.digest(to_json(around)))


def unproven(assembly: Assembly, now: Digests, before: lock.Entry | None) -> Assembly:
    """The assembly without the tools that `before` proves clean, for rules that look at one tool at a time."""
    if before is None or before.clean != now.clean(before.tools):
        return assembly
    changed = tuple(
        tool for tool, digest in zip(assembly.tools, now.tools, strict=True) if before.tools.get(tool.name) != digest
    )
    outlines = {found.place: found for tool in changed for _, found in assembly.schemas(tool)}
    return replace(assembly, tools=changed, outlines=outlines)


def _around(value: Json) -> Json:
    return {key: below for key, below in value.items() if key != "tools"} if isinstance(value, dict) else value


def _use(tool: Declared, names: frozenset[str]) -> str | None:
    """The tool to use in place of a deprecated one, which depends on what other tools there are."""
    use = (tool.ours.get("deprecated") or {}).get("use")
    return None if use is None else meant(use, tool, names)
