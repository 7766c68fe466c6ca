"""`stubwright completion`: print a shell completion script and complete words from manifests."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import PurePath
from typing import Any, Final

from stubwright.commands.shared.console import UsageError, write_out
from stubwright.commands.shared.options import declare

_WORDS: Final = "complete-words"
_FUNCTION: Final = "_stubwright_words"
_PREAMBLE: Final = {
    "bash": f"""
{_FUNCTION}() {{
  local found
  found="$(stubwright {_WORDS} --after "$COMP_WORDBREAKS" "${{COMP_LINE:0:$COMP_POINT}}" 2>/dev/null)"
  if [[ -n "$found" ]]; then echo "$found"; else compgen -f -- "$1"; fi
}}
""",
    "zsh": f"""
{_FUNCTION}() {{
  local -a found
  # In a subcommand, `words` begins with the subcommand.
  found=("${{(@f)$(stubwright {_WORDS} "stubwright ${{words[1,CURRENT]}}" 2>/dev/null)}}")
  if [[ -n "$found" ]]; then compadd -Q -S '' -a found; else _files; fi
}}
""",
    "fish": f"""
function {_FUNCTION}
  stubwright {_WORDS} (commandline -cp) 2>/dev/null | string match -r '.+'; or __fish_complete_path (commandline -ct)
end
""",
}
_ENDS: Final = {
    "bash": """
_stubwright_complete() {
  _shtab_stubwright
  [[ "${COMPREPLY-}" != *= ]] || compopt -o nospace  # the value belongs to the same word
}
complete -o bashdefault -F _stubwright_complete stubwright
"""
}

_SHELLS: Final = ("bash", "zsh", "fish", "tcsh")
_OPTIONS: Final = f"""
name SHELL?  {", ".join(_SHELLS)} (default: the shell in $SHELL)
"""


def add(verbs: Any) -> None:
    """Register the `completion` subcommand, and the hidden subcommand that its scripts call."""
    completion = verbs.add_parser("completion", _completion, help="print a shell completion script")
    declare(completion, _OPTIONS, name={"choices": _SHELLS})
    words = verbs.add_parser(_WORDS, _complete_words)
    words.add_argument("line")
    words.add_argument("--after", default="")


def _completion(arguments: argparse.Namespace) -> int:
    import shtab

    from stubwright.diagnostics.suggestions import did_you_mean

    shell: str = arguments.name or PurePath(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        hint = f"completion is not available for `{shell}`" if shell else "$SHELL is empty or not set"
        raise UsageError(f"{hint}; {did_you_mean(shell, _SHELLS, 'shells')}")
    parser: argparse.ArgumentParser = arguments.command_line
    words = {"bash": _FUNCTION, "zsh": _FUNCTION, "fish": f"({_FUNCTION})"}
    files = dict.fromkeys(("MANIFEST", "FILE", "SOURCE", "OLD", "NEW", "CONTRACT"), shtab.FILE)
    _mark(parser, files | {"DIR": shtab.DIRECTORY, "WORD": words})
    script = shtab.complete(parser, shell=shell, preamble=_PREAMBLE.get(shell, ""))
    if shell == "zsh":
        # shtab's script registers itself only in `eval`, not in `source <(stubwright completion zsh)`, and completes
        # only the first of several manifests.
        script = script.replace("$zsh_eval_context[-1] == eval ", "$zsh_eval_context[-1] == (eval|file) ")
        script = re.sub(r'^  "\(\*\)::?', '  "*:', script, flags=re.MULTILINE)
    write_out(f"{script}\n{_ENDS.get(shell, '')}")
    return 0


def _mark(parser: argparse.ArgumentParser, kinds: dict[str, Any]) -> None:
    """Set the completion functions of a parser's arguments. `kinds` maps metavars to completion functions."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _mark(subparser, kinds)
        elif isinstance(action.metavar, str):
            if action.metavar in kinds:
                setattr(action, "complete", kinds[action.metavar])  # noqa: B010 - shtab's own attribute
            action.metavar = action.metavar.replace(":", "-")  # zsh runs the text after a colon as a function


def _complete_words(arguments: argparse.Namespace) -> int:
    from stubwright.calling import completion

    for word in completion.complete(arguments.line, arguments.after):
        write_out(f"{word}\n")
    return 0
