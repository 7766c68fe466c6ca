"""Serves a recording's responses on standard input and output or over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stubwright.compile import pipeline
from stubwright.compile.syntax import yamlwriter
from stubwright.importers import servers
from stubwright.importers.document_reader import SingleFileReader
from stubwright.mock import files as mock_files
from stubwright.mock import server
from stubwright.recording.package import FILE, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stubwright import ir
    from stubwright.recording.conversations import Conversation

_LOADER = "stubwright.recording.package"
_MANIFEST = "manifest.json"
_LOG = "notifications/message"


def make_manifest(conversation: Conversation) -> tuple[ir.Manifest, Sequence[str]]:
    """Return a manifest with the recorded server's lists, with notes on fixes and omissions.

    Raises:
        UnfixableError: The lists are not a valid manifest even after omitting parts.
    """
    result = servers.make_manifest(conversation.listing, name=None, default_name="recorded")
    manifest = result.manifest
    if any(method == _LOG for call in conversation.calls for each in call.answers for method, _ in each.notifications):
        server_info = dict(manifest["server"])
        server_info["capabilities"] = {**server_info.get("capabilities", {}), "logging": True}
        manifest = {**manifest, "server": server_info}
    text = yamlwriter.format_imported(manifest, _MANIFEST)
    checked = pipeline.compile_manifest(_MANIFEST, SingleFileReader(_MANIFEST, text.encode()))
    if checked.manifest is None:
        raise AssertionError("an import returns a valid manifest")
    return checked.manifest, result.notes


def serve(path: str, data: bytes, manifest: ir.Manifest, options: Sequence[str], *, mocks: bool) -> int:
    """Serve until the client disconnects or a signal arrives; return the exit status.

    Args:
        path: The recording's name.
        data: The recording's content, which is valid.
        manifest: The manifest to list.
        options: Server options, such as `--http`.
        mocks: True to mock calls that were not recorded; otherwise they are rejected.

    Raises:
        OSError: The temporary folder cannot be written.
    """
    files = {FILE: data, OPTIONS: json.dumps({"path": path, "mocks": mocks}).encode()}
    return server.serve(mock_files.make_files(manifest), options, seed=0, loader=_LOADER, files=files)
