"""The verbs of the command line, one module each.

Each has `add`, which says how the verb is called, and imports what is heavy only when it runs. A verb takes the parsed
command line and gives the exit status.
"""

from __future__ import annotations

from toolwright.commands import check, completion, dev, diff, docs, generate, import_, install, mock, new, schema

VERBS = (new, check, generate, dev, install, diff, import_, mock, docs, schema, completion)
"""The modules, in the order in which `--help` lists them."""
