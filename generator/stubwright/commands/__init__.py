"""The verbs of the command line, one module each.

Each has `add`, which declares the verb's arguments, and imports heavy modules only when it runs. A verb takes the
parsed command line and gives the exit status.
"""

from __future__ import annotations

from stubwright.commands import (
    check,
    completion,
    diff,
    docs,
    export,
    generate,
    install,
    mock,
    new,
    publish,
    schema,
    targets,
    wheels,
)
from stubwright.commands.asking import call, inspect_, list_
from stubwright.commands.contracts import lock, testing, verify
from stubwright.commands.developing import dev
from stubwright.commands.importing import import_, refresh
from stubwright.commands.recording import record, replay

VERBS = (
    new,
    check,
    generate,
    dev,
    call,
    list_,
    inspect_,
    install,
    diff,
    lock,
    verify,
    testing,
    targets,
    export,
    import_,
    refresh,
    mock,
    record,
    replay,
    docs,
    publish,
    schema,
    wheels,
    completion,
)
"""The modules, in the order in which `--help` lists them."""
