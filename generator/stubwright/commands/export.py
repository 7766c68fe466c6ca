"""`stubwright export`: write a manifest's tools as functions for a model API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.commands.shared.console import Printer, UsageError, write_err, write_note, write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stubwright import ir


_OPTIONS: Final = """
manifest MANIFEST  a manifest
--target TARGET    the API, such as openai-strict
--tool NAME…       only this tool; may be repeated
-o, --output FILE  the output file (default: standard output)
"""


def add(verbs: Any) -> None:
    """Register the `export` subcommand and its options."""
    export = verbs.add_parser(
        "export",
        _export,
        help="write the tools as functions for a model API",
        epilog="The generated client does the same: `tools_for(TARGET)` returns the functions, and "
        "`call_for(TARGET, NAME, ARGUMENTS)` runs a model's call.",
    )
    declare(export, _OPTIONS, manifest=paths.normalize, target={"required": True})


def _export(arguments: argparse.Namespace) -> int:
    from stubwright.compile import pipeline
    from stubwright.diagnostics.suggestions import did_you_mean
    from stubwright.project.files import disk
    from stubwright_runtime.projection.forms import FORMS
    from stubwright_runtime.projection.functions import as_tools, project_tools

    if arguments.target not in FORMS:
        hint = did_you_mean(arguments.target, FORMS, "APIs with functions")
        raise UsageError(f"`{arguments.target}` does not support functions; {hint}")
    printer = Printer("text", strict=False)
    compiled = pipeline.compile_manifest(arguments.manifest, disk.Disk(), targets=("mcp",))
    errors = [diagnostic for diagnostic in compiled.diagnostics if diagnostic.severity == "error"]
    printer.add_compiled(arguments.manifest, errors, compiled.documents)
    if compiled.manifest is None:
        return printer.close() or 1
    tools = _choose(compiled.manifest, arguments.tool)
    projected = project_tools([tool.definition for tool in tools], FORMS[arguments.target])
    for note in _list_notes(projected, arguments.target):
        write_note(note)
    text = json.dumps(as_tools(FORMS[arguments.target], projected), indent=2, ensure_ascii=False) + "\n"
    if arguments.output is None:
        write_out(text)
        return 0
    try:
        disk.write(Path(arguments.output), text.encode())
    except OSError as error:
        write_err(f"stubwright: `{arguments.output}` cannot be written: {error.strerror or error}")
        return 1
    return 0


def _choose(manifest: ir.Manifest, names: Sequence[str]) -> list[ir.Tool]:
    from stubwright.diagnostics.suggestions import did_you_mean

    known = {tool.name: tool for tool in manifest.tools}
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no tool `{name}`; {did_you_mean(name, [*known], 'tools') or 'see the manifest'}"
            )
    return [tool for name, tool in known.items() if not names or name in names]


def _list_notes(projected: Sequence[Any], target: str) -> list[str]:
    from stubwright import targets

    listed = targets.make_list(
        ({"name": each.name, "description": each.description, "inputSchema": each.parameters} for each in projected),
        "",
    )
    notes = [f"renamed `{each.tool}` to `{each.name}`" for each in projected if each.tool != each.name]
    for finding in targets.find_violations(listed, targets.TARGETS[target]):
        if finding.rule.kind != "long name":
            subject = finding.what if finding.tool is None else f"`{finding.tool}` {finding.what}"
            notes.append(f"{subject}, which `{target}` might reject: {finding.fix} ({finding.rule.source})")
    return notes
