"""Finds the server that a command calls: the server of a manifest, a server at a URL, or the command after `--`.

A manifest's server is the generated server. It starts as it does for `dev` and `install`, with this shell's
environment. With `--mock`, it is a mock.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from stubwright import http
from stubwright.commands.shared import inputs as works
from stubwright.commands.shared import logins, server_lookup, servers
from stubwright.commands.shared.console import STYLE, UsageError, write_note
from stubwright.commands.shared.options import CommandParser, declare
from stubwright.diagnostics.suggestions import did_you_mean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping, Sequence

    from stubwright import ir
    from stubwright.commands.shared.console import Printer
    from stubwright.importers.sources import Source
    from stubwright.login.authorization import Authorization
    from stubwright_runtime.mcp.aliases import Alias

NO_ANSWER: Final = 3
"""Exit status if the server does not respond, so that scripts can distinguish it from other failures."""

_ENDINGS: Final = (".yaml", ".yml", ".json")
_BARE_URL: Final = re.compile(r"(https?:)/(?!/)|(?=(?:localhost|[\w-]+(?:\.[\w-]+)+):\d+(?:/|$))")


@dataclass(frozen=True, slots=True)
class Destination:
    """A server to send requests to.

    Attributes:
        label: The server's name in messages.
        url: The server's URL; None for a command.
        command: The command that starts the server; None for a URL.
        headers: HTTP headers for each request.
        environment: Additional environment variables for the process.
        manifest: The manifest that the server was generated from, if known.
        has_no_handlers: True for a manifest's server that runs without handlers, because none were specified.
        toolsets: The requested toolsets; callers see only tools that are in all of them.
        auth: The source of access tokens for requests.
    """

    label: str
    url: str | None = None
    command: Sequence[str] = ()
    headers: Mapping[str, str] | None = None
    environment: Mapping[str, str] | None = None
    manifest: ir.Manifest | None = None
    has_no_handlers: bool = False
    toolsets: Sequence[str] = ()
    auth: Authorization | None = None

    @property
    def source(self) -> Source:
        """The source that lists the server's tools, prompts and resources."""
        from stubwright.importers.sources import Command, Endpoint

        if self.url is not None:
            return Endpoint(self.url, self.headers or {}, self.auth)
        return Command(self.command, self.environment or {})

    def list_tools(self, toolset: str) -> Sequence[str]:
        """Return the tool names in one of the manifest's toolsets; empty if the toolset does not exist."""
        tools: Any = self.manifest.toolsets.get(toolset, {}).get("tools", ()) if self.manifest is not None else ()
        return tuple(tools)

    def find_aliases(self) -> Mapping[str, Alias]:
        """Return the aliases of the manifest's tools, keyed by old tool name."""
        from stubwright_runtime.mcp.aliases import Alias

        return {
            alias["name"]: Alias(alias["name"], tool.name, alias.get("removeAfter"), alias.get("arguments") or {})
            for tool in (self.manifest.tools if self.manifest is not None else ())
            for alias in tool.aliases
        }


_OPTIONS: Final = """
--toolset NAME…         use only the tools in this toolset
--mock                  use a mock server, which needs no handlers
--scope SCOPE…          a scope granted to the caller of the manifest's server
--handlers MODULE:NAME  the manifest's handlers (default: the manifest's `handlers`)
--python FILE           the interpreter that runs the manifest's server (default: this one)
-o, --output DIR        the folder for packages (default: the project's `output`, otherwise generated)
"""


def add_options(parser: CommandParser) -> None:
    """Add the options that select and start a server."""
    servers.add_reaching(parser)
    logins.add_options(parser)
    declare(parser, _OPTIONS)


def is_named(word: str) -> bool:
    """Return whether a command-line word is a URL or a manifest path, instead of a tool's name."""
    return http.is_url(word) or word.lower().endswith(_ENDINGS)


def pop_server(words: list[str], arguments: argparse.Namespace) -> str | None:
    """Pop a leading URL or manifest path from `words`; return None if the first word is neither.

    Raises:
        UsageError: A URL or a manifest path follows another word.
    """
    if arguments.command is not None or not words:
        return None
    if is_named(words[0]):
        return words.pop(0)
    if bare := _BARE_URL.match(words[0]):
        raise UsageError(f"`{words[0]}` is not a URL; did you mean `{bare[1] or 'http:'}//{words[0][bare.end() :]}`?")
    for word in words[1:]:
        if http.is_url(word) or (is_named(word) and "=" not in word):
            raise UsageError(f"the server comes first: put `{word}` before `{words[0]}`")
    return None


def find_destination(
    word: str | None, arguments: argparse.Namespace, printer: Printer, *, generated: bool = True
) -> Destination | None:
    """Return the server on the command line, or None after reporting an invalid manifest.

    Args:
        word: A URL or a manifest; None for the command after `--`, or for the project's only manifest.
        generated: True if a manifest's server will be started, which requires its package.

    Raises:
        UsageError: The server is missing or ambiguous, or an option does not apply to it.
    """
    if arguments.command is not None or (word is not None and (http.is_url(word) or "://" in word)):
        _refuse(arguments, ("mock", "scope", "handlers", "python", "output"), "is for a manifest's server")
        found: Destination | None = _convert_source(servers.parse_source(word, arguments.command, arguments))
    else:
        _refuse(arguments, ("header", "login", "logout", "client_credentials", "client_id"), "is for a URL")
        environment = dict(servers.parse_variable(text) for text in arguments.env)
        found = _find_manifest_server(word, arguments, environment, printer, generated)
    if found is None or not arguments.toolset:
        return found
    if found.manifest is not None:
        _check_toolsets(arguments.toolset, found.manifest)
    return _narrow(found, arguments.toolset)


def _check_toolsets(names: Sequence[str], manifest: ir.Manifest) -> None:
    for name in names:
        if name not in manifest.toolsets:
            advice = did_you_mean(name, manifest.toolsets, "toolsets")
            raise UsageError(f"there is no toolset `{name}`; {advice}")


def _convert_source(source: Source) -> Destination:
    from stubwright.importers.sources import Endpoint

    if isinstance(source, Endpoint):
        return Destination(source.label, url=source.url, headers=source.headers, auth=source.auth)
    return Destination(source.label, command=source.words, environment=source.environment)


def _find_manifest_server(
    word: str | None,
    arguments: argparse.Namespace,
    environment: Mapping[str, str],
    printer: Printer,
    generated: bool,
) -> Destination | None:
    from stubwright.project import launch

    if arguments.mock:
        _refuse(arguments, ("scope", "handlers", "python"), "has no effect on a mock, which serves all tools")
    arguments.manifests = () if word is None else (word,)
    run = works.find_run(arguments, printer, arguments.output)
    starts = generated and not arguments.mock
    manifest = server_lookup.find_server(run, printer, starts=starts) if run is not None else None
    if run is None or manifest is None:
        return None
    path = server_lookup.find_manifest(run)
    variables = {**os.environ, **environment}
    if arguments.mock:
        command: tuple[str, ...] = (sys.executable, "-P", "-m", "stubwright", "mock", path)
        return Destination(path, command=command, environment=variables, manifest=manifest)
    if generated and not launch.is_generated(manifest, run.target):
        from stubwright.commands import generate

        arguments.manifests = (path,)  # the project's other packages are left unchanged
        if generate.generate_quietly(arguments) != 0:
            return None
        write_note(f"`{run.target.folder / manifest.package}` was generated")
    start = launch.prepare(
        manifest, run.target, handlers=arguments.handlers, python=server_lookup.find_interpreter(arguments)
    )
    granted = [item for scope in arguments.scope for item in ("--scope", scope)]
    return Destination(
        path,
        command=(start.python, *start.arguments, *granted, "--log-level", "info" if STYLE.verbose else "warning"),
        environment=start.make_environment(variables),
        manifest=manifest,
        has_no_handlers=start.handlers is None,
    )


def _narrow(whole: Destination, toolsets: Sequence[str]) -> Destination:
    from stubwright_runtime.client.transports.connect import narrow

    target: Any = whole.url if whole.url is not None else whole.command
    headers = whole.headers
    for name in dict.fromkeys(toolsets):
        target, headers = narrow(target, headers, name, None)
    narrowed = replace(whole, toolsets=toolsets)
    return replace(narrowed, headers=headers) if whole.url is not None else replace(narrowed, command=tuple(target))


def _refuse(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    for name in names:
        value: Any = getattr(arguments, name)
        if value:
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def describe_unlisted(destination: Destination, name: str, listed: Collection[str]) -> str | None:
    """Describe a hidden tool whose name equals or resembles `name`, and how to reveal the tool.

    Return None if no tool matches.
    """
    from stubwright.diagnostics.suggestions import find_nearest

    near = find_nearest(name, dict.fromkeys([*listed, *(tool.name for tool in _list_tools(destination))]))
    hidden = None if near is None or near in listed else describe_hidden(destination, near)
    return hidden if hidden is None or near == name else f"there is no tool `{name}`; did you mean {hidden}"


def _list_tools(destination: Destination) -> Sequence[ir.Tool]:
    return () if destination.manifest is None else destination.manifest.tools


def describe_hidden(destination: Destination, *names: str) -> str | None:
    """Describe the manifest's tools whose scopes the caller lacks, with the remedy. Return None if no scope is missing.

    Tools outside the caller's toolsets are omitted, because no scope would reveal them.
    """
    tools = _list_tools(destination)
    offered = set(names).intersection(*map(destination.list_tools, destination.toolsets))
    hidden = [tool for tool in tools if tool.name in offered and tool.policy.get("scopes")]
    if not hidden:
        return None
    scopes = dict.fromkeys(scope for tool in hidden for scope in tool.policy["scopes"])
    shown = ", ".join(f"`{tool.name}`" for tool in hidden)
    options = " ".join(f"--scope {scope}" for scope in scopes)
    return f"{shown}: hidden from callers without scopes; add {options}"
