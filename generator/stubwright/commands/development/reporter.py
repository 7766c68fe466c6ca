"""Reports a `dev` run to the terminal and to the run's page.

The page is rendered again for each version that is served.
"""

from __future__ import annotations

import argparse
import threading
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from stubwright import tokens
from stubwright.commands.shared.console import OutputError, write_err, write_out
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stubwright import ir
    from stubwright.commands.development.identity import Identity
    from stubwright.commands.shared.comparison import Version
    from stubwright.workbench import page
    from stubwright.workbench.server import Difference, PageContent

_COMMIT: Final = "git:HEAD"
_UNKNOWN: Final = "no previous version"

SERVER_OPTIONS: Final = ("--audit", "-")
"""Server options that log each call."""


class Reporter:
    """Reports a run to the terminal, and to the page if it is open."""

    def __init__(self, content: PageContent | None, identity: Identity | None) -> None:
        """Create a reporter; without `content`, there is no page. The page calls the server as `identity`."""
        self._content = content
        self._identity = identity
        self._summary = ""
        self._cost = ""
        self._save = 0

    def report_line(self, text: str) -> None:
        """Report a line of the server's output. Called from the reader threads."""
        from stubwright.workbench import output

        line = output.read_line(text)
        if self._content is not None:
            self._content.journal.add(line.kind, **line.details)
        try:
            write_err(line.printed)
        except OutputError:
            return  # the terminal is closed; keep reading so that the server does not block

    def report_end(self, status: int) -> None:
        """Report that the server exited unexpectedly. Called from the thread that waits for it."""
        how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        if self._content is not None:
            self._content.journal.add("ended", status=status)
        write_err(f"stubwright: the server {how}; it restarts at the next save")

    def report_broken(self, *, is_running: bool) -> None:
        """Report that the saved version cannot be served."""
        if self._content is not None:
            self._content.journal.add("broken")
        goes_on = "the last valid version keeps running" if is_running else "no server is running"
        write_err(f"stubwright: {goes_on}; the next valid save will be served")

    def report_slow(self, seconds: int, stack: str, *, is_running: bool) -> None:
        """Report that the new server is slow to start, with the stack of its handlers if known."""
        goes_on = "the last valid version keeps running" if is_running else "no server is running"
        text = f"the new server has not started after {seconds} s; {goes_on}, and the next save starts again"
        if stack:
            text += f"; the handlers are at\n{stack.rstrip()}"
        first, *others = text.splitlines()
        if self._content is not None:
            self._content.journal.add("print", text=first)
            for line in others:
                self._content.journal.add("more", text=line)
        write_err(f"stubwright: {text}")

    def report_served(self, saved: Version, manifest: ir.Manifest, url: str) -> None:
        """Report that the saved version is served and what its tool list costs, and render its page.

        The changes are reported later.
        """
        from stubwright.compile.audience import costs

        cost, count = sum(costs.measure(manifest).tools.values()), len(manifest.tools)
        cost_line = f"the list of {count} tool{'' if count == 1 else 's'} costs a model {cost:,} {tokens.name_unit()}"
        if cost_line != self._cost:
            self._cost = cost_line
            write_out(f"  {cost_line}\n")
        if self._content is not None:
            self._update(self._content, manifest, saved.values, url)
        self._save += 1
        threading.Thread(target=self._compare, args=(self._save, saved), daemon=True).start()

    def _update(self, content: PageContent, manifest: ir.Manifest, source: Mapping[str, Any], url: str) -> None:
        from stubwright.workbench import page

        auth: Any = manifest.document.get("auth")
        identity = self._identity
        content.issue = _make_issue(identity, auth) if auth and identity is not None else None
        known = _describe_identity(identity, manifest, auth) if auth else None
        html = page.render(manifest, source, url=url, identity=known, last=content.journal.last)
        content.page, content.docs = html.text, html.docs
        content.journal.add("saved", digest=html.digest)

    def _compare(self, save: int, saved: Version) -> None:
        """Report the changes in a saved version, unless a later version is already served."""
        difference = _find_difference(saved)
        if save != self._save:
            return
        if self._content is not None:
            self._content.difference = difference
            self._content.journal.add("compared", **asdict(difference))
        if difference.summary not in (self._summary, _UNKNOWN):
            self._summary = difference.summary
            with suppress(OutputError):  # the terminal is closed
                write_out(f"  since the last commit: {difference.summary}\n")


def _make_issue(identity: Identity, auth: Mapping[str, Any]) -> Callable[[str, Sequence[str], Mapping[str, Any]], str]:
    from stubwright.workbench.server import RefusedError

    def issue(subject: str, scopes: Sequence[str], claims: Mapping[str, Any]) -> str:
        try:
            return identity.issuer.make_token(auth, subject, scopes, claims)
        except ValueError as error:
            raise RefusedError(str(error)) from error

    return issue


def _describe_identity(identity: Identity | None, manifest: ir.Manifest, auth: Mapping[str, Any]) -> page.Identity:
    from stubwright.serving.issuer import list_scopes
    from stubwright.workbench import page

    issuer, known = str(auth["issuer"]), list_scopes(manifest.document)
    if identity is None:
        return page.Identity(issuer, issues=False, subject="", scopes=known, chosen=(), claims={})
    chosen = tuple(identity.scopes)
    return page.Identity(
        issuer, issues=True, subject=identity.subject, scopes=known, chosen=chosen, claims=identity.claims
    )


def _find_difference(saved: Version) -> Difference:
    """Return the changes since the last commit, or the reason that the changes are unknown."""
    from stubwright.commands import diff
    from stubwright.commands.shared import comparison
    from stubwright.commands.shared.console import UsageError
    from stubwright.diff import printers
    from stubwright.workbench.server import Difference

    try:
        committed = comparison.read(_COMMIT, saved.name)
    except (comparison.VersionError, UsageError) as error:
        return Difference(_UNKNOWN, f"{error}\n")
    if committed.manifest is None:
        return Difference(_UNKNOWN, f"{saved.name} is missing or invalid in the last commit.\n")
    difference = diff.find_difference(committed, saved, argparse.Namespace(target=[], fail_on=None))
    if difference is None:
        return Difference(_UNKNOWN, f"{saved.name} is invalid.\n")
    text = printers.format_text(difference.changes, difference.comparison, color=False)
    between = f" from {difference.comparison.old} to {difference.comparison.new}"
    return Difference(to_one_line(text.rstrip().rpartition("\n")[2]).replace(between, ""), text)
