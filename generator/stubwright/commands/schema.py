"""`stubwright schema`: print the JSON Schema of manifests, for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stubwright import package_data
from stubwright.commands.shared.console import write_out

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Register the `schema` subcommand and its options."""
    verbs.add_parser("schema", _schema, help="print the manifest's own JSON Schema, for editors")


def _schema(_arguments: argparse.Namespace) -> int:
    write_out(package_data.MANIFEST_SCHEMA.read_text("utf-8"))
    return 0
