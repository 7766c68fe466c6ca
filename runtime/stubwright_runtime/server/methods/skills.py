"""Skills (SEP-2640). Their files are resources."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...mcp.errors import INVALID_PARAMS, ProtocolError
from ...mcp.vocabulary import FOLDER_MIME
from ...values.sanitizing import clean
from ..core.lists import PrimitiveList, StaleCursorError

if TYPE_CHECKING:
    from ...package import Package
    from ..core.feature import HandlerMethod, ServerContext
    from ..core.request import Answer, Request


class Skills:
    """A package's skills, sorted by folder."""

    def __init__(self, package: Package) -> None:
        self._package = package

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return an empty list, because skills need no handler methods."""
        return []

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return an empty mapping, because the list of skills does not change while the server runs."""
        return {}

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the functions that handle the skill methods."""
        reading = _SkillMethods(self._package, server)
        return {
            "skills/list": reading.list_all,
            "skills/get": reading.get,
            "resources/directory/read": reading.read_folder,
        }


@dataclass(frozen=True)
class _SkillMethods:
    """Handles the skill methods. A skill is hidden from callers that cannot read its `SKILL.md`."""

    package: Package
    server: ServerContext

    async def list_all(self, request: Request) -> dict[str, Any]:
        """Return a page of the list of skills (SEP-2640, "Listing Skills")."""
        return self._add_hints(self._page(PrimitiveList("skills", "resources", self._skills), request), request)

    async def get(self, request: Request) -> dict[str, Any]:
        """Return the list entry of one skill (SEP-2640, "Getting a Skill")."""
        uri: str = request.params["uri"]
        if uri not in self._skills or not self.server.offers(request, "resources", uri):
            raise ProtocolError(INVALID_PARAMS, f"Skill not found: {clean(uri)}", {"uri": uri})
        return self._add_hints({"skill": self._skills[uri]}, request)

    async def read_folder(self, request: Request) -> dict[str, Any]:
        """Return a page of the files and folders in a folder (SEP-2640, "Reading Directories")."""
        uri: str = request.params["uri"]
        children = self._folders.get(uri, {})
        shown = {key: child for key, child in children.items() if self._is_visible(key, request)}
        if not shown:
            raise ProtocolError(INVALID_PARAMS, f"Directory not found: {clean(uri)}", {"uri": uri})
        return self._page(PrimitiveList("resources", "resources", shown), request)

    def _page(self, listing: PrimitiveList, request: Request) -> dict[str, Any]:
        try:
            return self.server.lists.make_page(
                listing, request.params.get("cursor"), lambda key: self._is_visible(key, request)
            )
        except StaleCursorError:
            raise ProtocolError(INVALID_PARAMS, "Invalid cursor") from None

    def _add_hints(self, result: dict[str, Any], request: Request) -> dict[str, Any]:
        return {**result, **self.server.lists.hints} if request.revision.has("cache_hints") else result

    def _is_visible(self, uri: str, request: Request) -> bool:
        if uri in self._folders:
            return any(self._is_visible(child, request) for child in self._folders[uri])
        return self.server.offers(request, "resources", uri)

    @cached_property
    def _skills(self) -> Mapping[str, dict[str, Any]]:
        return {skill["uri"]: skill for skill in self.package.manifest["skills"]}

    @cached_property
    def _folders(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """The entries of all folders, by the folder's URI and then by the entry's URI."""
        folders: dict[str, dict[str, dict[str, Any]]] = {}
        resources = self.package.list_entries("resources")
        for uri, skill in self._skills.items():
            root = posixpath.dirname(uri)
            for file in skill["resources"]:
                child, entry = file["uri"], resources[file["uri"]][0]
                while child != root:
                    folder = posixpath.dirname(child)
                    folders.setdefault(folder, {})[child] = entry
                    child, entry = folder, {"uri": folder, "name": posixpath.basename(folder), "mimeType": FOLDER_MIME}
        return folders
