"""Parses the server on a command line (a URL, or a command after `--`) and its options.

Only words after `--` are run as a command.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from stubwright.commands.shared import logins
from stubwright.commands.shared.console import UsageError
from stubwright.commands.shared.options import CommandParser, declare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stubwright.importers.acceptance import ImportResult
    from stubwright.importers.limits import Deadline, Limits
    from stubwright.importers.server_listing import ServerListing
    from stubwright.importers.sources import Command, Source

_BYTES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


_REACHING: Final = """
--header NAME:VALUE…  an HTTP header for each request to a URL
--token HEADER        an access token for a URL: --header "Authorization: Bearer TOKEN"
"""


def add_reaching(parser: CommandParser, only_after: str | None = None) -> None:
    """Accept a command after `--`, and add the options for connecting to a URL or starting a command."""
    parser.takes_command, parser.only_after = True, only_after
    declare(parser, _REACHING, token={"dest": "header", "action": "append", "type": _parse_token})
    add_passing(parser)


def _parse_token(text: str) -> str:
    """Return the `Authorization` header for a bearer token. Raises argparse.ArgumentTypeError."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the token is empty")
    return f"Authorization: Bearer {text}"


_PASSING: Final = """
--env NAME[=VALUE]…  a variable for the command, which otherwise inherits only basic ones such as PATH and HOME,
  and the settings for proxies, certificates, pip, uv and npm; without VALUE, its value in this shell
"""


def add_passing(parser: argparse.ArgumentParser) -> None:
    """Add the option `--env`."""
    declare(parser, _PASSING)


def add_options(parser: CommandParser, only_after: str | None = None) -> None:
    """Add the options for reaching a server, and the limits on its responses."""
    add_reaching(parser, only_after)
    add_limits(parser, "time limit for the whole import")


def add_limits(parser: argparse.ArgumentParser, timeout: str) -> None:
    """Add the options that limit how long and how much a server can send.

    Args:
        timeout: The help text for `--timeout`, without its default.
    """
    declare(
        parser,
        f"""
--timeout SECONDS  {timeout} (default: 60; plus up to 600 for a command to start)
--max-bytes SIZE   the maximum that the server can send in total, after decompression, such as 256MiB (default: 64MiB)
--max-pages N      the maximum number of pages in a list (default: 1000)
""",
        timeout=parse_seconds,
        max_bytes=_parse_size,
        max_pages=_parse_count,
    )


def find_limits(arguments: argparse.Namespace, source: Source | None = None) -> Limits:
    """Return the limits on the command line.

    Args:
        source: The server, because only commands get time to start; None if there are several servers.
    """
    from stubwright.importers import limits
    from stubwright.importers.sources import Command

    is_started = source is None or isinstance(source, Command)
    default = limits.Limits()
    return limits.Limits(
        arguments.timeout or default.seconds,
        limits.STARTING if is_started and not arguments.timeout else None,
        arguments.max_bytes or default.size,
        arguments.max_pages or default.pages,
    )


def start_deadline(arguments: argparse.Namespace) -> Deadline:
    """Return a deadline that starts now and ends after `--timeout`."""
    from stubwright.importers.limits import Deadline

    return Deadline(find_limits(arguments).seconds)


def prepare_manifest(
    source: Source, arguments: argparse.Namespace, make: Callable[[ServerListing], ImportResult], deadline: Deadline
) -> Callable[[], ImportResult]:
    """Return a function that creates a manifest from a server's lists, within the command line's limits."""

    def run_import() -> ImportResult:
        from stubwright.importers import live

        listing = live.read(source, find_limits(arguments, source), started=deadline.restart)
        with deadline.enforce():
            return make(listing)

    return run_import


def parse_source(url: str | None, command: Sequence[str] | None, arguments: argparse.Namespace) -> Source:
    """Return the server on the command line.

    Raises:
        UsageError: The server is missing or given twice, or an option does not apply to it.
    """
    if (url is None) == (command is None):
        raise UsageError("specify one server: a URL, or a command after `--`")
    headers = dict(parse_header(text) for text in arguments.header)
    if command is not None:
        if not command:
            raise UsageError("the command after `--` is empty")
        if headers:
            raise UsageError("--header and --token are for a URL; a command has no headers")
        if logins.is_requested(arguments):
            raise UsageError("--login and --client-credentials are for a URL; a command has no access token")
        return start(command, arguments)
    if arguments.env:
        raise UsageError("--env is for a command; a URL has no environment")
    return logins.make_endpoint(check_url(url or ""), headers, arguments)


def start(command: Sequence[str], arguments: argparse.Namespace) -> Command:
    """Return a server command with the variables from `--env`. Raises UsageError."""
    from stubwright.importers.sources import Command

    return Command(command, dict(map(parse_variable, arguments.env)))


def name(source: Source) -> str:
    """Return a default name for a server: its host or its program."""
    words = getattr(source, "words", None)
    return Path(words[0]).name if words else urlsplit(getattr(source, "url", "")).hostname or "server"


def check_url(text: str) -> str:
    """Return `text` if it is an HTTP URL. Raises UsageError."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        advice = "" if "://" in text else f"; put a command after `--`, as in: -- {text}"
        raise UsageError(f"`{text}` is not an http or https URL{advice}")
    return text


def parse_header(text: str) -> tuple[str, str]:
    """Parse a `--header` into name and value. Raises UsageError with a message that omits the value."""
    key, colon, value = text.partition(":")
    # The value may be a secret, so it is never shown.
    if not colon or not key.strip() or not key.strip().isascii():
        raise UsageError("--header requires NAME:VALUE, such as `Authorization: Bearer …`")
    return check_header((key.strip(), value.strip()))


def check_header(item: tuple[str, str]) -> tuple[str, str]:
    """Return a header if its value is valid. Raises UsageError with a message that omits the value."""
    key, value = item
    if not value.isascii() or not value.isprintable():
        raise UsageError(f"the value of the header `{key}` contains a character that is not allowed in headers")
    return item


def parse_variable(text: str) -> tuple[str, str]:
    """Parse an `--env` into name and value. Raises UsageError with a message that omits the value."""
    key, equals, value = text.partition("=")
    if not key:
        raise UsageError("--env requires NAME or NAME=VALUE")
    if equals:
        return key, value
    environment: Mapping[str, str] = os.environ
    if key not in environment:
        raise UsageError(f"--env {key}: the variable is not set")
    return key, environment[key]


def parse_seconds(text: str) -> float:
    """Parse a positive number of seconds. Raises argparse.ArgumentTypeError."""
    return parse_positive(text, "a positive number of seconds")


def parse_positive(text: str, described: str) -> float:
    """Parse a positive number below a million.

    Args:
        described: The expected value, for the message.

    Raises:
        argparse.ArgumentTypeError: The text is not a number in this range.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < 1_000_000:
        raise argparse.ArgumentTypeError(f"`{text}` is not {described}")
    return number


def _parse_count(text: str) -> int:
    if re.fullmatch("[1-9][0-9]{0,6}", text) is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 to 9999999")
    return int(text)


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,14})(B|KiB|MiB|GiB)?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not a size; expected one such as 64MiB")
    return int(match[1]) * _BYTES[match[2] or "B"]
