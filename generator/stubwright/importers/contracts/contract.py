"""Creates and reads contracts in a canonical form: the same lists always produce the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.compile import source, structure
from stubwright.compile.syntax import yamltext, yamlwriter
from stubwright.diagnostics import Diagnostic, Place, Span
from stubwright.importers import servers
from stubwright.importers.contracts.locations import KEY, Location
from stubwright.importers.document_reader import DocumentError, read
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stubwright.compile.source import Document, Reader

_DIGEST_LINE: Final = 2


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract read from a file.

    Attributes:
        path: The file's path.
        document: The file's text and parsed value.
        location: Where the server runs.
        edited: A diagnostic if the digest does not match, else None.
    """

    path: str
    document: Document
    location: Location
    edited: Diagnostic | None

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest."""
        value: Mapping[str, Any] = self.document.value
        return value


def arrange(manifest: Mapping[str, Any], location: Location) -> dict[str, Any]:
    """Return a contract's manifest: sorted, with the server's location."""
    arranged: dict[str, Any] = {"stubwright": manifest["stubwright"], KEY: location.to_value()}
    arranged |= {key: value for key, value in manifest.items() if key != "stubwright"}
    for section in vocabulary.SECTIONS:
        if section.name in arranged:
            entries = sorted(arranged[section.name], key=lambda entry: str(entry[section.key]))
            arranged[section.name] = [_order_keys(entry) for entry in entries]
    return arranged


def _order_keys(entry: Mapping[str, Any]) -> dict[str, Any]:
    known = [key for key in entry if key in servers.KEYS]
    others = sorted(key for key in entry if key not in servers.KEYS and key != "stubwright")
    own = [key for key in entry if key == "stubwright"]
    return {key: entry[key] for key in (*known, *others, *own)}


def read_contract(path: str, reader: Reader) -> Contract:
    """Read and validate the contract at `path`.

    Raises:
        DocumentError: The file cannot be read or is not a contract.
    """
    document = read(path, reader, yamltext.parse, "a contract in YAML")
    location = Location.parse(document.value.get(KEY)) if isinstance(document.value, dict) else None
    if not yamlwriter.is_locked(document.text):
        problem = Diagnostic(
            "SW405", "this file is not a contract", Span(path, 1, 1, 1, 2), "create one with `stubwright lock`"
        )
        raise DocumentError(problem.message, [problem], {path: document})
    # In other versions, fields can have other meanings, and running the command could be unsafe.
    fault = structure.check_version(document.value, path) if isinstance(document.value, dict) else None
    if fault is not None:
        raise DocumentError(fault.message, [fault], {path: document})
    if location is None:
        message = f"this contract has no server location: `{KEY}` requires one of `url`, `command` and `file`"
        problem = Diagnostic("SW405", message, Place(path, (KEY,)), "lock the server again")
        raise DocumentError(problem.message, [problem], {path: document})
    return Contract(path, document, location, _find_edit(path, document))


def _find_edit(path: str, document: source.Document) -> Diagnostic | None:
    if yamlwriter.is_intact(document.text):
        return None
    line = document.text.split("\n")[_DIGEST_LINE - 1].rstrip("\r")
    return Diagnostic(
        "SW402",
        "this contract was edited after it was locked: its digest does not match",
        Span(path, _DIGEST_LINE, 1, _DIGEST_LINE, max(len(line), 1) + 1),
        "lock the server again, or restore the file",
    )
