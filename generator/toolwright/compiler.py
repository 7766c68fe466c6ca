"""The compiler: one pure function from a manifest's files to the files of its package.

    source.load → schema.validate → assemble → schema.schemas → rules.check → lower.lower → units → plan →
    render.page

`check` goes as far as the IR; `generate` goes to the artifacts. Neither reads a clock, a disk or an environment, but
for the files that the reader gives and toolwright's own templates and runtime.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from toolwright import ir, lock, lower, proof, rules, schema, source, workspace
from toolwright.assembly import assemble
from toolwright.diagnostics import Diagnostic, Place, has_errors
from toolwright.workspace import Artifact

if TYPE_CHECKING:
    from toolwright import units
    from toolwright.helper import Helper
    from toolwright.source import Document, Reader

_SIBLINGS = re.compile(r"^ *from \.(\w*)[\w.]* import (\([^)]*\)|[^#\n]*)", re.MULTILINE)
_NAME = re.compile(r"(\w+)(?: as \w+)?")

RUNTIME = Path(__file__).with_name("runtime")
REQUIREMENTS = ("jsonschema-rs>=0.60", "mcp>=2.3,<3", "pydantic>=2.12")
CALLING = ("httpx2>=2.10",)
"""What a package needs beside, whose server calls an API; the floor is that of `mcp`, which brings it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A manifest that was read and checked. `manifest` is None where an error stopped it.

    `tools` has the digest of what each tool is made from, and `clean` proves to the next run that nothing was found.
    """

    manifest: ir.Manifest | None
    diagnostics: tuple[Diagnostic, ...]
    documents: Mapping[str, Document]
    tools: Mapping[str, str] = field(default_factory=dict)
    clean: str = ""


def check(
    entry: str,
    reader: Reader,
    shown: str | None = None,
    command: str | None = None,
    before: lock.Entry | None = None,
) -> Checked:
    """Check the manifest at `entry`.

    Args:
        entry: Its path, as diagnostics show it.
        reader: Reads it and what it includes.
        shown: Its path as headers of generated files show it; by default the same.
        command: What generates its package, as headers show it.
        before: What the lock keeps of the last run, so that what was clean need not be judged again.
    """
    bundle, found = source.load(entry, reader)
    if bundle is None:
        return Checked(None, tuple(found), {})
    wrong = list(schema.validate(bundle))
    if has_errors(found):
        about = [one for one in wrong if isinstance(one.at, Place) and one.at.pointer[:1] == ("include",)]
        return Checked(None, (*found, *schema.in_order(bundle, about)), bundle.documents)
    if has_errors(wrong):
        wrong += schema.schemas(bundle)
        return Checked(None, (*found, *schema.in_order(bundle, wrong)), bundle.documents)
    assembly = assemble(bundle)
    source_ = shown or entry
    command_ = command or f"toolwright generate {source_}"
    now = proof.digests(assembly, (workspace.generator(), source_, command_))
    unproven = proof.unproven(assembly, now, before)
    clean = {tool.place for tool in assembly.tools} - {tool.place for tool in unproven.tools}
    found += schema.in_order(bundle, (*wrong, *schema.schemas(bundle, clean)))
    if has_errors(found):
        return Checked(None, tuple(found), bundle.documents)
    found = rules.heeded(assembly, found + rules.check(assembly, unproven))
    if has_errors(found):
        return Checked(None, tuple(found), bundle.documents)
    manifest = replace(lower.lower(assembly, source_), command=command_)
    tools = {tool.name: digest for tool, digest in zip(assembly.tools, now.tools, strict=True)}
    proven = "" if found else now.clean(tools)
    return Checked(manifest, (*found, *rules.unserved(assembly)), bundle.documents, tools, proven)


def digests(manifest: ir.Manifest, checked: Checked) -> lock.Entry:
    """The digests of all that the artifacts of `manifest` are made from: of the whole, and of each tool."""
    parts = [
        workspace.generator(),
        manifest.source,
        manifest.command,
        manifest.package,
        manifest.stem,
        manifest.handlers,
        sorted(manifest.emit),
        {key: value for key, value in manifest.document.items() if key != "tools"},
        [entry.get("toolwright") for entry in manifest.document["tools"]],
        [[path, lock.digest(data)] for path, data in sorted(manifest.files.items())],
        list(checked.tools.items()),
        [[shared.name, shared.circle, shared.schema.own] for shared in manifest.shared],
    ]
    text = json.dumps(parts, separators=(",", ":"))
    return lock.Entry(lock.digest(text.encode()), tools=checked.tools, clean=checked.clean)


def generate(
    manifest: ir.Manifest,
    made: lock.Entry,
    before: units.Generated | None = None,
    helper: Helper | None = None,
) -> tuple[Artifact, ...]:
    """All files of the manifest's package, in a fixed order.

    Args:
        manifest: The lowered manifest.
        made: Its digests.
        before: The package as it was generated before, from which the parts of unchanged tools are taken.
        helper: Makes the parts of other tools, if there is one.
    """
    from toolwright import plan, render, units
    from toolwright.plan import parts

    root = manifest.package
    head = render.header(manifest.source, manifest.command)

    def rendered(page: plan.Page) -> Artifact:
        return Artifact(f"{root}/{page.path}", render.page(head, page).encode())

    begun = units.begin(manifest, made.tools, before, helper)
    attached = manifest.files if "server" in manifest.emit else {}
    rest = [*map(rendered, plan.of_manifest(manifest))]
    rest += [Artifact(f"{root}/{path}", data) for path, data in sorted(attached.items())]
    rest += [Artifact(f"{root}/manifest.json", _json(manifest.document)), Artifact(f"{root}/py.typed", b"")]
    rest += [
        Artifact(f"{root}/_runtime/{name}.py", workspace.RUNTIME_MARK + (RUNTIME / f"{name}.py").read_bytes())
        for name in parts.runtime(manifest, _runtime_imports())
    ]
    models = begun()
    pages = map(rendered, plan.of_models(manifest, models.units, models.offers, models.shared))
    modules = [
        Artifact(f"{root}/models/{tool.names.module}.py", models.units[tool.name].module.encode())
        for tool in manifest.tools
    ]
    modules += [
        Artifact(f"{root}/models/{offer.home.replace('.', '/')}.py", offer.module.encode())
        for offer in models.offers
        if offer.home is not None and offer.module
    ]
    return (*pages, *modules, *rest)


def requirements(manifest: ir.Manifest) -> tuple[str, ...]:
    """What the generated package needs installed."""
    return tuple(sorted((*REQUIREMENTS, *CALLING))) if manifest.calls else REQUIREMENTS


def _json(document: Mapping[str, ir.Json]) -> bytes:
    """A manifest as JSON. A shared schema that many tools hold is the same object in each, and laid out once."""
    made = BytesIO()
    _lay_out(made, document, 0, _TO_SHARED, {})
    made.write(b"\n")
    return made.getvalue()


_TO_SHARED = (("tools",), None, ("inputSchema", "outputSchema"), ("$defs", "definitions"), None)
"""The keys that lead to bundled schemas, level by level; at some, all do."""


def _lay_out(
    made: BytesIO, value: ir.Json, depth: int, leading: Sequence[tuple[str, ...] | None], known: dict[int, bytes]
) -> None:
    """Write JSON as `json` does with an indent; what stands at the end of `leading` keys is kept in `known`."""
    from pydantic_core import to_json  # at a twentieth of the time that `json` takes

    margin = b"\n" + b"  " * depth
    if not leading:
        if id(value) not in known:
            known[id(value)] = to_json(value, indent=2).replace(b"\n", margin)
        made.write(known[id(value)])
    elif value and (isinstance(value, list) or (isinstance(value, dict) and _leads(value, leading[0]))):
        opening, closing = (b"{", b"}") if isinstance(value, dict) else (b"[", b"]")
        entries = value.items() if isinstance(value, dict) else ((None, each) for each in value)
        for number, (key, each) in enumerate(entries):
            made.write(b"," if number else opening)
            made.write(margin + b"  ")
            if key is not None:
                made.write(to_json(key) + b": ")
            goes_on = leading[0] is None or key in leading[0]
            _lay_out(made, each, depth + 1, leading[1:] if goes_on else (), known if goes_on else {})
        made.write(margin + closing)
    else:
        _lay_out(made, value, depth, (), {})


def _leads(value: Mapping[str, ir.Json], keys: tuple[str, ...] | None) -> bool:
    return keys is None or not value.keys().isdisjoint(keys)


@cache
def _runtime_imports() -> Mapping[str, tuple[str, ...]]:
    """For each runtime module, the runtime modules it imports."""
    return {path.stem: tuple(_siblings(path.read_text("utf-8"))) for path in sorted(RUNTIME.glob("*.py"))}


def _siblings(text: str) -> Iterable[str]:
    for found in _SIBLINGS.finditer(text):
        if found[1]:
            yield found[1]
        else:
            yield from _NAME.findall(found[2])
