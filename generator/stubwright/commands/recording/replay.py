"""`stubwright replay`: serve the responses in a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stubwright import paths
from stubwright.commands.shared import serving
from stubwright.commands.shared.console import explain, write_err, write_note
from stubwright.commands.shared.options import declare
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stubwright import ir
    from stubwright.recording.conversations import Conversation

_WRONG: Final = 1


_OPTIONS: Final = """
file FILE         a recording from `stubwright record`
--mock MANIFEST   serve this manifest's lists, and mock responses that were not recorded
"""


def add(verbs: Any) -> None:
    """Register the `replay` subcommand and its options."""
    replay = verbs.add_parser("replay", _replay, help="serve the responses in a recording")
    serving.add_options(replay)
    declare(replay, _OPTIONS, file=paths.normalize, mock=paths.normalize)


def _replay(arguments: argparse.Namespace) -> int:
    from stubwright.importers.document_reader import SourceError
    from stubwright.project.files.disk import Disk
    from stubwright.recording import conversations, lines

    options = serving.list_options(arguments)
    path: str = arguments.file
    try:
        data = Disk().read(path)
        whole = lines.count_whole(path, data)
        if 0 < whole < len(data):  # `record` was killed while writing, or is still writing
            data = data[:whole]
            write_note(to_one_line(f"{path}: the last line is cut off and was omitted"))
        conversation = conversations.read(lines.parse(path, data))
        manifest = _make_manifest(conversation) if arguments.mock is None else serving.read_manifest(arguments.mock)
    except lines.RecordingError as error:
        return _fail(str(error))
    except SourceError as error:
        return _fail(f"{path} cannot be replayed: {error}")
    except FileNotFoundError:
        return _fail(f"{path} does not exist; create a recording with `stubwright record`")
    except OSError as error:
        return _fail(f"{path} cannot be read: {explain(error)}")
    if manifest is None:
        return _WRONG
    if conversation.omitted:
        write_note(f"{conversation.omitted} responses that started a task are not replayed")
    return _serve(path, data, manifest, options, mocks=arguments.mock is not None)


def _serve(path: str, data: bytes, manifest: ir.Manifest, options: Sequence[str], *, mocks: bool) -> int:
    from stubwright.recording import replay

    try:
        return replay.serve(path, data, manifest, options, mocks=mocks)
    except OSError as error:
        return _fail(f"cannot write the replay: {explain(error)}")


def _fail(problem: str) -> int:
    write_err(to_one_line(f"stubwright: {problem}"))
    return _WRONG


def _make_manifest(conversation: Conversation) -> ir.Manifest:
    from stubwright.importers.document_reader import SourceError
    from stubwright.recording import replay

    listing = conversation.listing
    if not (conversation.calls or listing.info or any(listing.sections.values())):
        raise SourceError("it contains no responses from a server")
    manifest, notes = replay.make_manifest(conversation)
    for note in notes:
        write_note(to_one_line(note))
    return manifest
