"""Compares skills, including frontmatter and files.

Hosts identify a skill by its URI, and ask for approval again when a file's digest changes (SEP-2640, "Security
Considerations").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir
    from stubwright.diff.kinds.tools import ManifestPair
    from stubwright.ir import Json

_APPROVAL = "hosts ask their users for approval again"


def compare(pair: ManifestPair, files: tuple[str, str]) -> Iterator[Change]:
    """Yield changes to skills. `files` are the old and new entry file's paths."""
    before, after = ({skill["uri"]: skill for skill in manifest.skills} for manifest in (pair.old, pair.new))
    texts = _texts(pair.old), _texts(pair.new)
    old, new = Place(files[0], ("skills",)), Place(files[1], ("skills",))
    for uri in before:
        if uri not in after:
            yield Subject(f"skill `{uri}`", old).change("SW562", "breaking", "the skill was removed")
    for uri, skill in after.items():
        if uri in before:
            yield from _compare_skill(Subject(f"skill `{uri}`", old, new), before[uri], skill, *texts)
        else:
            yield Subject(f"skill `{uri}`", None, new).change("SW562", "compatible", "a new skill")


def _compare_skill(
    subject: Subject,
    old: Mapping[str, Json],
    new: Mapping[str, Json],
    old_texts: Mapping[str, str],
    new_texts: Mapping[str, str],
) -> Iterator[Change]:
    was, now = old["frontmatter"], new["frontmatter"]
    for key in dict.fromkeys((*was, *now)):
        if was.get(key) != now.get(key):
            yield subject.change_words("SW562", f"`{key}` changed", was.get(key), now.get(key))
    before, after = ({file["uri"]: file["digest"] for file in skill["resources"]} for skill in (old, new))
    for uri in before:
        if uri not in after:
            yield subject.change("SW562", "may break", f"the file `{uri}` was removed", _APPROVAL)
    for uri, digest in after.items():
        if uri not in before:
            yield subject.change("SW562", "compatible", f"the file `{uri}` was added", _APPROVAL)
        elif before[uri] != digest and uri in old_texts and uri in new_texts:
            yield subject.change_words("SW562", f"the file `{uri}` changed", old_texts[uri], new_texts[uri])
        elif before[uri] != digest:
            yield subject.change("SW562", "compatible", f"the file `{uri}` changed", _APPROVAL)


def _texts(manifest: ir.Manifest) -> Mapping[str, str]:
    known = frozenset(manifest.skill_files)
    entries = [entry for entry in manifest.document.get("resources") or () if entry["uri"] in known]
    return {
        entry["uri"]: manifest.files[entry["stubwright"]["file"]].decode()
        for entry in entries
        if not entry["stubwright"]["binary"]
    }
