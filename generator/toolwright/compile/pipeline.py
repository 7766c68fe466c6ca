"""The compiler: one pure function from a manifest's files to the files of its package.

    source.load → schema.validate → assemble → schema.schemas → rules.check → lower.lower → units → plan →
    render.page

`check` goes as far as the IR; `generate` goes to the artifacts. Neither reads a clock, a disk or an environment, but
for the files that the reader gives and toolwright's own templates and runtime.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolwright import ir, package_data
from toolwright.compile import lower, rules, source, validate
from toolwright.compile.resolve import resolve
from toolwright.diagnostics import Diagnostic, Place, has_errors
from toolwright.incremental import digests as proof
from toolwright.project import lock, workspace
from toolwright.project.workspace import Artifact

if TYPE_CHECKING:
    from toolwright.codegen import modules as units
    from toolwright.compile.source import Document, Reader
    from toolwright.incremental.worker import Helper

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
    wrong = list(validate.validate(bundle))
    if has_errors(found):
        about = [one for one in wrong if isinstance(one.at, Place) and one.at.pointer[:1] == ("include",)]
        return Checked(None, (*found, *validate.in_order(bundle, about)), bundle.documents)
    if has_errors(wrong):
        wrong += validate.schemas(bundle)
        return Checked(None, (*found, *validate.in_order(bundle, wrong)), bundle.documents)
    resolved = resolve(bundle)
    source_ = shown or entry
    command_ = command or f"toolwright generate {source_}"
    now = proof.digests(resolved, (workspace.generator(), source_, command_))
    unproven = proof.unproven(resolved, now, before)
    clean = {tool.place for tool in resolved.tools} - {tool.place for tool in unproven.tools}
    found += validate.in_order(bundle, (*wrong, *validate.schemas(bundle, clean)))
    if has_errors(found):
        return Checked(None, tuple(found), bundle.documents)
    found = rules.suppressed(resolved, found + rules.check(resolved, unproven))
    if has_errors(found):
        return Checked(None, tuple(found), bundle.documents)
    manifest = replace(lower.lower(resolved, source_), command=command_)
    tools = {tool.name: digest for tool, digest in zip(resolved.tools, now.tools, strict=True)}
    proven = "" if found else now.clean(tools)
    return Checked(manifest, (*found, *rules.unserved(resolved)), bundle.documents, tools, proven)


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
        sorted(manifest.features),
        {key: value for key, value in manifest.document.items() if key != "tools"},
        [entry.get("toolwright") for entry in manifest.document["tools"]],
        [[path, lock.digest(data)] for path, data in sorted(manifest.files.items())],
        list(checked.tools.items()),
        [[shared.name, shared.schema.wire] for shared in manifest.shared],
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
    from toolwright.codegen import features, package, readme, render
    from toolwright.codegen import modules as units

    root = manifest.package
    head = render.header(manifest.source, manifest.command)

    def rendered(page: package.Page) -> Artifact:
        path = page.path if page.is_beside else f"{root}/{page.path}"
        return Artifact(path, render.page(head, page).encode())

    used = features.features(manifest)
    begun = units.begin(manifest, made.tools, before, helper)
    attached = manifest.files if "server" in manifest.emit else {}
    rest = [*map(rendered, package.of_manifest(manifest, used))]
    rest += [Artifact(f"{root}/{path}", data) for path, data in sorted(attached.items())]
    rest += [Artifact(f"{root}/manifest.json", _json(manifest.document)), Artifact(f"{root}/py.typed", b"")]
    rest += [
        Artifact(
            f"{root}/_runtime/{name}.py", workspace.RUNTIME_MARK + (package_data.RUNTIME / f"{name}.py").read_bytes()
        )
        for name in features.runtime(manifest, used)
    ]
    rest += [
        Artifact(f"{root}/_runtime/README.md", readme.readme(manifest, used).encode()),
        Artifact(f"{root}/.gitattributes", b"* linguist-generated=true\n"),
    ]
    models = begun()
    pages = map(rendered, package.of_models(manifest, used, models.units, models.primitives, models.shared))
    modules = [
        Artifact(f"{root}/models/{tool.names.module}.py", models.units[tool.name].module.encode())
        for tool in manifest.tools
    ]
    modules += [
        Artifact(f"{root}/models/{primitive.home.replace('.', '/')}.py", primitive.module.encode())
        for primitive in models.primitives
        if primitive.home is not None and primitive.module
    ]
    return (*pages, *modules, *rest)


def requirements(manifest: ir.Manifest) -> tuple[str, ...]:
    """What the generated package needs installed."""
    return tuple(sorted((*REQUIREMENTS, *CALLING))) if manifest.calls else REQUIREMENTS


def _json(value: object) -> bytes:
    from pydantic_core import to_json  # as `json` writes it with an indent, at a twentieth of the time

    return to_json(value, indent=2) + b"\n"
