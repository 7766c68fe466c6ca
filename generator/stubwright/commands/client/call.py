"""`stubwright call`: call a server's tool with arguments from the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.client import destinations
from stubwright.commands.shared import servers
from stubwright.commands.shared.console import (
    Printer,
    UsageError,
    explain,
    is_interactive,
    print_painted,
    write_err,
    write_note,
    write_out,
)
from stubwright.commands.shared.options import CommandParser, declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from stubwright.calling.calls import LimitError, Outcome
    from stubwright.commands.client.destinations import Destination
    from stubwright.login.errors import LoginError
    from stubwright_runtime.client.core.errors import ResultTooLarge
    from stubwright_runtime.client.features.questions import OnQuestion
    from stubwright_runtime.client.rpc.mcp_error import MCPError

_FAILED: Final = 1

_EPILOG: Final = """arguments:
  NAME=VALUE       typed by the tool's schema: days=3, verbose=true, place.city=Paris; repeat NAME for a list
  NAME:=JSON       any value: units:=null, tags:='["a", "b"]'
  NAME=@FILE       the content of a file (base64 if the schema requires it); @@ for a value that starts with @
  '{"NAME": …}'    all arguments as JSON; `-` reads them from standard input

exit status:
  0 success, 1 the tool failed, or its result or the manifest is invalid, 2 usage error, 3 no response from the server,
  130 interrupted

examples:
  stubwright call specs/weather.yaml get_weather location=Paris
  stubwright call https://example.com/mcp search query=cats limit=5 --header "Authorization: Bearer …"
  stubwright call echo text=hello -- npx -y @modelcontextprotocol/server-everything
"""


_ANSWERING: Final = """
--answer NAME=VALUE…  a field of the answer to the server's question; yes or no for a form with one boolean or no field
--no-input            never prompt at the terminal
"""


_OPTIONS: Final = """
words WORD*  the server, unless a command follows; the tool; arguments
--format text|json  the format of the whole result
--save DIR   write the result's images, audio and files to this folder
"""


def add(verbs: Any) -> None:
    """Register the `call` subcommand and its options."""
    call: CommandParser = verbs.add_parser(
        "call",
        _call,
        help="call a tool on a server: a manifest's, one at a URL, or a command's",
        usage="stubwright call [options] [MANIFEST | URL] TOOL [ARGUMENT…] [-- COMMAND…]",
        epilog=_EPILOG,
    )
    call.late = "words"
    destinations.add_options(call)
    declare(call, _OPTIONS)
    servers.add_limits(
        call,
        "time limit for the whole call, excluding prompts; by default only the steps before the response have one",
    )
    declare(call, _ANSWERING)


def _call(arguments: argparse.Namespace) -> int:
    words = list(arguments.words)
    named = destinations.pop_server(words, arguments)
    if not words:
        raise UsageError("specify a tool, as in: stubwright call specs/weather.yaml get_weather location=Paris")
    printer = Printer(arguments.format, strict=False)
    destination = destinations.find_destination(named, arguments, printer)
    if destination is None:
        return printer.close()
    tool, *given = words
    return _send(destination, tool, given, arguments)


def _send(destination: Destination, tool: str, given: list[str], arguments: argparse.Namespace) -> int:
    import anyio

    from stubwright.calling import calls, terminal
    from stubwright.calling.arguments import ArgumentError, parse
    from stubwright.importers.live import interrupt_on_signals, silence_libraries
    from stubwright.login.errors import LoginError
    from stubwright_runtime.client.core.errors import ResultTooLarge
    from stubwright_runtime.client.rpc.mcp_error import MCPError
    from stubwright_runtime.client.tasks.errors import TaskCancelled, TaskExpired, TasksUnsupported

    progress = terminal.Progress(sys.stderr)
    is_asked = is_interactive() and not arguments.no_input

    asking: OnQuestion | None = (
        terminal.TerminalPrompter(sys.stderr, progress, sys.stdin.readline) if is_asked else None
    )
    answers: terminal.Answers | None = None
    if arguments.answer:
        try:
            asking = answers = terminal.Answers(arguments.answer, sys.stderr, asking)
        except ArgumentError as error:
            raise UsageError(str(error)) from None

    aliases = destination.find_aliases()

    def make(definition: Mapping[str, Any]) -> dict[str, Any]:
        schema = definition.get("inputSchema") or {}
        return parse(given, schema, lambda path: Path(path).read_bytes(), _read_input, write_note)

    async def run() -> Outcome:
        return await calls.call(
            calls.Server(
                destination.url or destination.command, destination.headers, destination.environment, destination.auth
            ),
            tool,
            make,
            limits=servers.find_limits(arguments, destination.source),
            seconds=arguments.timeout,
            on_progress=progress if sys.stderr.isatty() else None,
            on_log=terminal.Log(sys.stderr, progress),
            on_question=None if asking is None else terminal.check_answers(asking, sys.stderr),
            on_listed=lambda definition: _compare(destination, definition),
            aliases=aliases,
        )

    try:
        with silence_libraries(), interrupt_on_signals():
            outcome = anyio.run(run)
    except calls.UnknownToolError as error:
        own = aliases[tool].tool if tool in aliases else tool
        raise UsageError(destinations.describe_unlisted(destination, own, error.listed) or str(error)) from None
    except ArgumentError as error:
        raise UsageError(str(error)) from None
    except (LoginError, MCPError, ResultTooLarge, calls.LimitError, OSError) as error:
        progress.clear()
        write_err(f"stubwright: {_describe_failure(destination, error)}")
        return destinations.NO_ANSWER
    except (TaskCancelled, TaskExpired, TasksUnsupported) as error:
        progress.clear()
        write_err(f"stubwright: {error}")
        return destinations.NO_ANSWER
    progress.clear()
    if answers is not None and answers.unused:
        write_note(f"no question matched --answer {', '.join(answers.unused)}")
    return _show(outcome, tool, arguments)


def _describe_failure(
    destination: Destination, error: LoginError | MCPError | ResultTooLarge | LimitError | OSError
) -> str:
    from stubwright.calling import calls
    from stubwright.login.errors import LoginError
    from stubwright_runtime.client.core.errors import ResultTooLarge

    if isinstance(error, LoginError):
        return f"`{destination.label}` was not called because authorization failed: {error}"
    if isinstance(error, ResultTooLarge):
        return f"the result has more than {error.limit:,} bytes; raise the limit with --max-bytes"
    if isinstance(error, calls.LimitError):
        return f"`{destination.label}` {error}"
    if isinstance(error, OSError):
        return f"`{destination.label}` cannot be called: {explain(error)}"
    return f"{calls.describe(error)}{_hint(destination, error)}"


def _read_input() -> str:
    """Read standard input as UTF-8 in every locale. Raises ArgumentError."""
    from stubwright.calling.arguments import ArgumentError

    if sys.stdin is None:
        raise ArgumentError("`-` reads standard input, which is closed")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")  # PowerShell writes a byte order mark first
    except UnicodeDecodeError:
        raise ArgumentError("standard input is not valid UTF-8") from None
    except OSError as error:
        raise ArgumentError(f"standard input cannot be read: {explain(error)}") from None


def _show(outcome: Outcome, tool: str, arguments: argparse.Namespace) -> int:
    from stubwright.calling import results

    if arguments.format == "json":
        write_out(results.to_json(outcome.result) + "\n")
    elif outcome.failed:
        write_err(results.show(outcome.result).rstrip("\n") or "the tool failed without a reason")
    else:
        print_painted(lambda color: results.show(outcome.result, color=color), sys.stdout)
    if arguments.save is not None:
        try:
            for path in results.save(outcome.result, tool, Path(arguments.save)):
                write_err(f"wrote {path}")
        except OSError as error:
            write_err(f"stubwright: cannot write the result's files: {explain(error)}")
            return _FAILED
    if outcome.unlisted is not None:
        write_note(f"`{tool}` is not listed; {outcome.unlisted}")
    if outcome.renamed is not None:
        until = f", to be removed after {outcome.renamed['removeAfter']}" if "removeAfter" in outcome.renamed else ""
        write_note(f"`{tool}` is an old name for `{outcome.renamed['tool']}`{until}")
    if outcome.wrong is not None:
        write_err(f"stubwright: {outcome.wrong}")
    return _FAILED if outcome.failed or outcome.wrong is not None else 0


def _compare(destination: Destination, definition: Mapping[str, Any]) -> None:
    """Print a note if the server's tool differs from the manifest's tool."""
    if destination.manifest is None:
        return
    known = next((tool for tool in destination.manifest.tools if tool.name == definition["name"]), None)
    if known is not None and known.definition.get("inputSchema") != definition.get("inputSchema"):
        write_note(f"`{known.name}` was generated from an older manifest; run `stubwright generate`")


def _hint(destination: Destination, error: Exception) -> str:
    from stubwright_runtime.client.core.connect_errors import Forbidden, ServerExited, Unauthorized
    from stubwright_runtime.client.core.environment import describe_withheld
    from stubwright_runtime.mcp.errors import MISSING_REQUIRED_CLIENT_CAPABILITY

    if isinstance(error, Unauthorized | Forbidden) and destination.url is not None and error.status is not None:
        return "; add credentials with --login, --token or --header"
    if getattr(error, "code", None) == MISSING_REQUIRED_CLIENT_CAPABILITY:
        return "; answer questions at a terminal, or with --answer"
    if isinstance(error, ServerExited) and destination.has_no_handlers:
        return "; specify its handlers with --handlers, or call a mock with --mock"
    if isinstance(error, ServerExited) and error.withheld:
        return f"\n  help: {describe_withheld(error.withheld, '--env NAME')}"
    return ""
