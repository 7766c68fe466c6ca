"""Options for access tokens for servers at URLs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from stubwright.commands.shared.console import UsageError, write_note
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from stubwright.importers.sources import Endpoint
    from stubwright.login.authorization import Authorization

_CREDENTIALS: Final = ("STUBWRIGHT_CLIENT_ID", "STUBWRIGHT_CLIENT_SECRET")
"""The environment variables for the client ID and the client secret."""


_OPTIONS: Final = f"""
--client-id ID  with --login: log in as this registered client; its secret, if any, is in {_CREDENTIALS[1]}
"""


_WAYS: Final = f"""
--logout              delete the saved login for the server at a URL, and send no token
--login               log in to the server at a URL in your browser, unless a login is saved; later commands use it
--client-credentials  get the access token for a URL with the client ID and secret in {" and ".join(_CREDENTIALS)}
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for access tokens to a command."""
    ways = parser.add_mutually_exclusive_group()
    declare(ways, _WAYS)
    declare(parser, _OPTIONS)


def is_requested(arguments: argparse.Namespace) -> bool:
    """Return whether the command line has an option for access tokens."""
    return any(getattr(arguments, name, None) for name in ("login", "logout", "client_credentials", "client_id"))


def check_shared(arguments: argparse.Namespace, count: int) -> None:
    """Raise UsageError unless client credentials would be sent to exactly one server."""
    if count != 1 and (getattr(arguments, "client_credentials", False) or getattr(arguments, "client_id", None)):
        what = "several servers would get the same secrets" if count else "no URL is specified"
        raise UsageError(f"--client-credentials and --client-id are for one URL; {what}")


def check_configured(arguments: argparse.Namespace) -> None:
    """Raise UsageError if client credentials would be sent to the servers in a configuration."""
    if arguments.client_credentials or arguments.client_id:
        raise UsageError("--client-credentials and --client-id are for one URL: they cannot be combined with --config")


def make_endpoint(url: str, headers: Mapping[str, str], arguments: argparse.Namespace) -> Endpoint:
    """Return the endpoint at a URL, with access tokens from the command-line options or a saved login.

    Raises:
        UsageError: An option cannot be used with this URL or the other options.
    """
    from stubwright.http import is_token_url
    from stubwright.importers.sources import Endpoint

    if getattr(arguments, "logout", False):
        _log_out(url)
        return Endpoint(url, headers)
    is_safe, is_asked = is_token_url(url), is_requested(arguments)
    if any(name.lower() == "authorization" for name in headers):
        if is_asked:
            raise UsageError("--login and --client-credentials get the access token: omit --token and Authorization")
        return Endpoint(url, headers)
    if is_asked and not is_safe:
        raise UsageError("--login and --client-credentials require an https URL without a user or password")
    if getattr(arguments, "client_credentials", False):
        return Endpoint(url, headers, _find_credentials(url, arguments))
    if getattr(arguments, "login", False):
        from stubwright.login.authorization import BrowserLogin
        from stubwright.login.tokens import Program

        name: str | None = arguments.client_id
        program = None if name is None else Program(name, os.environ.get(_CREDENTIALS[1], ""))
        return Endpoint(url, headers, BrowserLogin(url, headers, write_note, program))
    if is_asked:
        raise UsageError("--client-id is for --login")
    if not is_stored(url):
        return Endpoint(url, headers)
    from stubwright.login.authorization import StoredLogin

    return Endpoint(url, headers, StoredLogin(url))


def _log_out(url: str) -> None:
    from stubwright.login import storage
    from stubwright.login.errors import LoginError
    from stubwright.login.requests import show

    outcome = "was deleted" if is_stored(url) else "did not exist"
    try:
        storage.delete(url)
    except LoginError as error:
        raise UsageError(str(error)) from None
    write_note(f"the saved login for {show(url)} {outcome}")


def is_stored(url: str) -> bool:
    """Return whether a login for the server at a URL is saved."""
    from stubwright.http import is_token_url
    from stubwright.login import storage

    return is_token_url(url) and os.path.lexists(storage.locate(url))


def _find_credentials(url: str, arguments: argparse.Namespace) -> Authorization:
    from stubwright.login.authorization import ClientCredentials

    if arguments.client_id is not None:
        raise UsageError(f"--client-id is for --login; with --client-credentials, set {_CREDENTIALS[0]} instead")
    values = [os.environ.get(name, "").strip() for name in _CREDENTIALS]
    if not all(values):
        raise UsageError(f"--client-credentials requires the variables {' and '.join(_CREDENTIALS)}")
    return ClientCredentials(url, *values)
