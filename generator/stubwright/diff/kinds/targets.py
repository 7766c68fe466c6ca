"""Finds target rules that the new manifest violates and the old manifest did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright import targets
from stubwright.compile.audience import target_checks
from stubwright.diff.changes import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stubwright import ir
    from stubwright.diff.kinds.tools import ManifestPair


def compare(pair: ManifestPair, names: Sequence[str], file: str) -> Iterator[Change]:
    """Yield a change for each rule of a target that a tool newly violates.

    Args:
        names: The targets to check. By default, the new manifest's targets, or the portable target if it lists none.
        file: The new entry file's path, as in source locations.
    """
    shared = {shared.name: shared.schema.place for shared in pair.new.shared}
    by_name = {tool.name: tool for tool in pair.new.tools}
    for name in targets.TARGETS.expand(names or pair.new.targets or (targets.PORTABLE,)):
        if name not in targets.TARGETS:
            continue
        target = targets.TARGETS[name]
        before = {(id(finding.rule), finding.tool) for finding in _find_violations(pair.old, target)}
        for finding in _find_violations(pair.new, target):
            if (id(finding.rule), finding.tool) not in before:
                yield Change(
                    "SW560",
                    "wire",
                    "breaking" if finding.rule.is_sure and not finding.rule.is_lossy else "may break",
                    f"tool `{finding.tool}`" if finding.tool else "the tool list",
                    target_checks.describe(finding),
                    None,
                    target_checks.place(finding, file, by_name, shared),
                    target_checks.advise(finding),
                    target=name,
                )


def _find_violations(manifest: ir.Manifest, target: targets.Target) -> Iterator[targets.Finding]:
    tools = targets.make_list((tool.listed for tool in manifest.tools), str(manifest.server["name"]))
    return targets.find_violations(tools, target)
