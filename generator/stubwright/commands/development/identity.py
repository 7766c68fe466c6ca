"""Access tokens for `dev --scope`. Its server rejects all other tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared.console import UsageError, write_out
from stubwright.commands.shared.options import declare

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from stubwright import ir
    from stubwright.serving.issuer import Issuer

_SUBJECT: Final = "dev"


_OPTIONS: Final = f"""
--scope SCOPE…       accept only tokens from this run, and print a token with this scope; may be repeated
--as NAME            subject of the token (default: {_SUBJECT})
--claim NAME=VALUE…  another claim in the token, such as tenant=acme; JSON or text; may be repeated
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the identity in the run's token."""
    declare(parser, _OPTIONS, **{"as": {"dest": "subject"}})


@dataclass(frozen=True, slots=True)
class Identity:
    """The issuer, subject, scopes and claims of a run's first token."""

    issuer: Issuer
    subject: str
    scopes: Sequence[str]
    claims: Mapping[str, Any]


def read(arguments: argparse.Namespace) -> Identity | None:
    """Return the identity in the run's token; None if the run issues no tokens. Raises UsageError."""
    if not arguments.scope:
        for option, given in (("--as", arguments.subject), ("--claim", arguments.claim or None)):
            if given is not None:
                raise UsageError(f"{option} requires --scope, which selects the token's scopes")
        return None
    from stubwright.serving.issuer import Issuer, check_claims

    claims = dict(map(_read_claim, arguments.claim))
    try:
        check_claims(claims)
    except ValueError as error:
        raise UsageError(f"--claim: {error}") from error
    return Identity(Issuer(), arguments.subject or _SUBJECT, arguments.scope, claims)


def _read_claim(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--claim is {text!r}; expected NAME=VALUE, such as tenant=acme")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def check_scopes(scopes: Sequence[str], manifest: ir.Manifest, path: str) -> None:
    """Raise UsageError if the manifest requires no tokens or does not declare a scope."""
    from stubwright.diagnostics.suggestions import did_you_mean
    from stubwright.serving.issuer import list_scopes

    if scopes and not manifest.document.get("auth"):
        raise UsageError(f"--scope is for servers that require tokens; `{path}` has no `auth`")
    known = list_scopes(manifest.document)
    for scope in scopes:
        if scope not in known:
            hint = did_you_mean(scope, known, "scopes")
            raise UsageError(f"--scope is `{scope}`, which the manifest does not declare; {hint}")


def announce(identity: Identity | None, manifest: ir.Manifest, url: str) -> None:
    """If the manifest requires tokens, print a token from this run, or the option that issues tokens."""
    auth: Any = manifest.document.get("auth")
    if not auth:
        return
    if identity is None:
        from stubwright.serving.issuer import list_scopes

        scopes = " ".join(f"--scope {scope}" for scope in list_scopes(manifest.document)[:2] or ("SCOPE",))
        write_out(f"callers need a token from {auth['issuer']}; for local tokens, use: stubwright dev {scopes}\n")
        return
    from stubwright.serving.issuer import HOURS

    token = identity.issuer.make_token(auth, identity.subject, identity.scopes, identity.claims)
    write_out(
        "\nThe server accepts only tokens from this run. "
        f"A token for `{identity.subject}` with {' '.join(identity.scopes)} ({HOURS} hours):\n"
        f"TOKEN={token}\n"
        f'stubwright list {url} --header "Authorization: Bearer $TOKEN"\n'
    )
