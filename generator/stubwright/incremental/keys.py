"""Computes cache keys: digests of all inputs that affect an output."""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright.compile.handles import get_declared
from stubwright.compile.resolve import resolve_use, to_json
from stubwright.compile.syntax import yamlwriter
from stubwright.incremental.digests import compute_digest, compute_generator_digest, with_lf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright import ir
    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Json


@dataclass(frozen=True, slots=True)
class Keys:
    """A digest of each tool in a manifest, keyed by name, and a digest of all other parts."""

    tools: Mapping[str, str]
    around: str


def make_keys(resolved: ResolvedBundle, made_by: Sequence[str]) -> Keys:
    """Return a resolved manifest's keys; `made_by` lists other inputs that affect every output."""
    rich = (resolved.entry.get("python") or {}).get("formats")
    settings = [resolved.entry.get("formats"), resolved.entry.get("policy"), rich, get_declared(resolved)]
    settings += [resolved.entry.get("targets"), resolved.entry["server"]["name"], resolved.entry.get("budget")]
    head = hashlib.sha256(to_json([*made_by, *settings]))
    folder = posixpath.dirname(resolved.bundle.entry)
    files = {path: posixpath.relpath(path, folder or ".") for path in resolved.bundle.documents}
    names = frozenset(tool.name for tool in resolved.tools)
    shared = compute_digest(
        to_json([[files[key.file], key.name, outline.schema] for key, outline in resolved.shared.items()])
    )

    def digest_tool(tool: Declaration) -> str:
        parts: list[Json] = [tool.name, files[tool.place.file], tool.extension, tool.unbound, _use(tool, names)]
        if any(outline.list_shared() for _, outline in resolved.list_schemas(tool)):
            parts.append(shared)
        hasher = head.copy()
        hasher.update(tool.data)
        hasher.update(to_json(parts))
        return f"sha256:{hasher.hexdigest()}"

    around = [
        *made_by,
        [(files[fragment.path], fragment.prefix, fragment.kind) for fragment in resolved.bundle.fragments],
        [
            (files[path], yamlwriter.is_imported(document.text), _around(document.value))
            for path, document in resolved.bundle.documents.items()
        ],
    ]
    return Keys({tool.name: digest_tool(tool) for tool in resolved.tools}, compute_digest(to_json(around)))


def digest_unit(tool: str, reserved: frozenset[str]) -> str:
    """Return the key for a tool's unit: a digest of the tool and of the names that its classes avoid."""
    return tool if not reserved else compute_digest(to_json([tool, sorted(reserved)]))


def digest_manifest(manifest: ir.Manifest, tools: Mapping[str, str]) -> str:
    """Return a digest of everything that a manifest's files are generated from; `tools` has the digest of each tool."""
    parts = [
        compute_generator_digest(),
        manifest.source,
        manifest.command,
        manifest.package,
        manifest.stem,
        manifest.handlers,
        sorted(manifest.emit),
        manifest.refs,
        manifest.splits_types,
        {key: value for key, value in manifest.document.items() if key != "tools"},
        [entry.get("stubwright") for entry in manifest.document["tools"]],
        [[path, compute_digest(with_lf(data))] for path, data in sorted(manifest.files.items())],
        list(tools.items()),
        [[shared.name, shared.circle, shared.schema.own] for shared in manifest.shared],
    ]
    return compute_digest(to_json(parts))


def _around(value: Json) -> Json:
    return {key: below for key, below in value.items() if key != "tools"} if isinstance(value, dict) else value


def _use(tool: Declaration, names: frozenset[str]) -> str | None:
    """Return the replacement for a deprecated tool, or None. The name of the replacement depends on the other tools."""
    use = (tool.extension.get("deprecated") or {}).get("use")
    return None if use is None else resolve_use(use, tool, names)
