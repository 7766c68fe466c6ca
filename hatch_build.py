"""The long description of the distribution: the README, with links that also work on the page of a package index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK: Final = re.compile(r"(?<!!)\[([^\[\]]+)\]\((?!https?://|#)([^()\s]+)\)")


class LongDescription(MetadataHookInterface):
    """Sets `readme`, which `pyproject.toml` declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README, with its relative links resolved at the tag of the version."""
        text = Path(self.root, "README.md").read_text("utf-8")
        address = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": resolve_links(text, None if address is None else f"{address}/blob/v{metadata['version']}"),
        }


def resolve_links(text: str, base: str | None) -> str:
    """Return Markdown without relative links.

    Args:
        text: The Markdown; links to headings stay.
        base: The URL of the folder that links are relative to; None replaces each link with its text.
    """
    return _LINK.sub(lambda match: match[1] if base is None else f"[{match[1]}]({base}/{match[2]})", text)
