"""Names and writes contract files without overwriting manual edits."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stubwright import paths
from stubwright.commands.importing import import_
from stubwright.compile.syntax import yamlwriter
from stubwright.diagnostics import Diagnostic, Place
from stubwright.importers.contracts import contract
from stubwright.project.files import disk

if TYPE_CHECKING:
    from stubwright.importers.contracts.locations import Location

_LONGEST_NAME: Final = 64
_OTHER_FILE: Final = "move or delete it, or choose another file with `-o`"


def make_name(name: str) -> str:
    """Return a file name for a server's contract that is valid on every operating system."""
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:_LONGEST_NAME].rstrip("-")
    if not plain:
        plain = f"server-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"{plain}-server.yaml" if paths.is_device(plain) else f"{plain}.yaml"


def report_duplicate(path: str, first: str, second: str) -> Diagnostic:
    """Return the diagnostic for two servers of one run that would have the same contract file."""
    message = f"this file was just written for `{first}`; `{second}` has the same name"
    return Diagnostic("SW403", message, Place(path), "lock each server separately with `-o`")


def write(path: str, text: str, location: Location | None, *, force: bool) -> tuple[Diagnostic | None, str]:
    """Write a contract unless that would overwrite other content; return the diagnostic, if any, and the file's state.

    Args:
        text: The contract's YAML.
        location: The server whose contract can be replaced; None for any server.
        force: True to replace a contract that was edited or belongs to another server.

    Raises:
        DocumentError: The existing contract does not specify the location of its server.
    """
    try:
        existing = disk.read_text(Path(path)) or ""
        if existing == text:
            return None, "up to date"
        if existing.strip() and (problem := _find_obstacle(path, existing, location, force=force)):
            return problem, ""
        disk.create(Path(path), text)
    except OSError as error:
        return import_.describe_unwritable(error), ""
    return None, "locked again" if existing else "locked"


def _find_obstacle(path: str, existing: str, location: Location | None, *, force: bool) -> Diagnostic | None:
    """Return the diagnostic for a file that cannot be replaced, or None if the file can be replaced."""
    if not yamlwriter.is_locked(existing):
        return Diagnostic("SW403", "this file is not a contract, so it was left unchanged", Place(path), _OTHER_FILE)
    if force:
        return None
    if not yamlwriter.is_intact(existing):
        message = "this contract was edited after it was locked, so it was left unchanged"
        return Diagnostic("SW403", message, Place(path), "review the difference, then discard the edits with `--force`")
    known = None if location is None else contract.read_contract(path, disk.Disk()).location
    if location is not None and known is not None and known.label != location.label:
        message = f"this is the contract for another server, `{known.label}`, so it was left unchanged"
        return Diagnostic("SW403", message, Place(path), "choose another file with `-o`, or replace it with `--force`")
    return None
