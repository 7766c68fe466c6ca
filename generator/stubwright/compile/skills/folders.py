"""Groups files by skill and parses `SKILL.md` frontmatter, without disk access."""

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
"""The file in each skill's root folder (Agent Skills, "Directory structure")."""

MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
"""The maximum skill size that every host accepts (SEP-2640, "Limits")."""

FIX: Final = "start the file with `---`, `name:`, `description:` and `---`, each on its own line"
"""Advice for a file without frontmatter."""

# Match lines by LF only: alternatives for line endings took exponential time with CRLF.
_FRONTMATTER: Final = re.compile(r"---[ \t]*\r?\n(?:[^\n]*\n)*?(?=---[ \t]*\r?(?:\n|\Z))")
_IGNORED: Final = "__pycache__"


def group(folder: str, listed: Iterable[str]) -> Mapping[str, list[str]]:
    """Group the files below a folder by skill folder.

    The files of a nested skill also belong to the outer skill (SEP-2640, "Nested Skills"). Hidden files and bytecode
    are ignored.

    Args:
        listed: The paths of all files below the folder.
    """
    visible = [path for path in listed if _is_visible(posixpath.relpath(path, folder or "."))]
    roots = sorted(posixpath.dirname(path) for path in visible if posixpath.basename(path) == MANIFEST)
    return {root: [path for path in visible if not root or path.startswith(f"{root}/")] for root in roots}


def _is_visible(path: str) -> bool:
    return not any(step.startswith(".") or step == _IGNORED for step in path.split("/"))


def split(text: str) -> str:
    """Return the frontmatter at the start of a `SKILL.md`, or an empty string."""
    match = _FRONTMATTER.match(text)
    return match[0] if match else ""


def parse(text: str) -> tuple[Json, list[Problem]]:
    """Parse a `SKILL.md`'s frontmatter. Return the value and the problems, with positions in the whole file."""
    start = split(text)
    if not start:
        return None, [Problem("SW276", "the skill has no frontmatter", 0, min(len(text), 3), FIX)]
    return yamltext.parse(start)
