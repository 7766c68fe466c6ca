"""Changes of skills: which there are, what their frontmatter says, and which files they have.

Hosts know a skill by its URI, and ask people again as soon as one of its files has another digest (SEP-2640, "Security
Considerations").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, change_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir
    from stubwright.diff.kinds.tools import ManifestPair
    from stubwright.ir import Json

_APPROVAL = "hosts ask people again before they use it"


def compare(pair: ManifestPair, files: tuple[str, str]) -> Iterator[Change]:
    """Yield changes of skills; `files` are the two entry files."""
    before, after = ({skill["uri"]: skill for skill in manifest.skills} for manifest in (pair.old, pair.new))
    texts = _texts(pair.old), _texts(pair.new)
    places = Place(files[0], ("skills",)), Place(files[1], ("skills",))
    for uri in before:
        if uri not in after:
            yield Change("SW562", "wire", "breaking", f"skill `{uri}`", "the skill is gone", places[0])
    for uri, skill in after.items():
        if uri in before:
            yield from _compare_skill(f"skill `{uri}`", before[uri], skill, texts, places)
        else:
            yield Change("SW562", "wire", "compatible", f"skill `{uri}`", "a new skill", None, places[1])


def _compare_skill(
    about: str,
    old: Mapping[str, Json],
    new: Mapping[str, Json],
    texts: tuple[Mapping[str, str], Mapping[str, str]],
    places: tuple[Place, Place],
) -> Iterator[Change]:
    was, now = old["frontmatter"], new["frontmatter"]
    for key in dict.fromkeys((*was, *now)):
        if was.get(key) != now.get(key):
            yield change_words("SW562", about, f"`{key}` changed", places, was.get(key), now.get(key))
    before, after = ({file["uri"]: file["digest"] for file in skill["resources"]} for skill in (old, new))
    for uri in before:
        if uri not in after:
            yield Change("SW562", "wire", "may break", about, f"the file `{uri}` is gone", *places, _APPROVAL)
    for uri, digest in after.items():
        if uri not in before:
            yield Change("SW562", "wire", "compatible", about, f"the file `{uri}` is new", *places, _APPROVAL)
        elif before[uri] != digest and uri in texts[0] and uri in texts[1]:
            yield change_words("SW562", about, f"the file `{uri}` changed", places, texts[0][uri], texts[1][uri])
        elif before[uri] != digest:
            yield Change("SW562", "wire", "compatible", about, f"the file `{uri}` changed", *places, _APPROVAL)


def _texts(manifest: ir.Manifest) -> Mapping[str, str]:
    """Return the files of skills that are text, by their URIs."""
    known = frozenset(manifest.skill_files)
    entries = [entry for entry in manifest.document.get("resources") or () if entry["uri"] in known]
    return {
        entry["uri"]: manifest.files[entry["stubwright"]["file"]].decode()
        for entry in entries
        if not entry["stubwright"]["binary"]
    }
