"""Groups files by skill, and parses the frontmatter of `SKILL.md`, without access to the disk."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from stubwright.compile.syntax import yamltext
from stubwright.compile.syntax.positions import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stubwright.ir import Json

MANIFEST: Final = "SKILL.md"
"""The file at the root of each skill (Agent Skills, "Directory structure")."""

MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
"""The maximum size of a skill that every host accepts (SEP-2640, "Limits")."""

FIX: Final = "begin the file with `---`, `name:`, `description:` and `---`, each on its own line"
"""Advice for a file without frontmatter."""

# Only `\n` separates lines: alternatives for line endings took exponential time in texts with CRLF.
_FRONTMATTER: Final = re.compile(r"---[ \t]*\r?\n(?:[^\n]*\n)*?(?=---[ \t]*\r?(?:\n|\Z))")
_IGNORED: Final = "__pycache__"


def group(folder: str, listed: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the files of each skill below a folder, by the skill's own folder.

    The files of a nested skill also belong to the outer one (SEP-2640, "Nested Skills"). Hidden files and bytecode are
    ignored.

    Args:
        folder: The folder.
        listed: The paths of all files below it.
    """
    visible = [path for path in listed if _is_visible(posixpath.relpath(path, folder or "."))]
    roots = sorted(posixpath.dirname(path) for path in visible if posixpath.basename(path) == MANIFEST)
    return {root: [path for path in visible if not root or path.startswith(f"{root}/")] for root in roots}


def _is_visible(path: str) -> bool:
    return not any(step.startswith(".") or step == _IGNORED for step in path.split("/"))


def split(text: str) -> str:
    """Return the text of a `SKILL.md` before the end of its frontmatter, or an empty string."""
    match = _FRONTMATTER.match(text)
    return match[0] if match else ""


def parse(text: str) -> tuple[Json, list[Problem]]:
    """Parse the frontmatter of a `SKILL.md`: return its value, and problems with positions in the whole text."""
    start = split(text)
    if not start:
        return None, [Problem("SW276", "the skill has no frontmatter", 0, min(len(text), 3), FIX)]
    return yamltext.parse(start)
