"""Authorizes principals by the scopes that tools, resources and prompts require."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..mcp.uri_templates import UriTemplate
from ..values.json import is_list, is_mapping, is_object

if TYPE_CHECKING:
    from ..package import Package
    from ..server.core.principal import Principal

_SECTIONS: Final = ("tools", "resources", "resourceTemplates", "prompts")


class Scopes:
    """The scopes that one package's tools, resources and prompts require.

    Attributes:
        challenges: True if callers over HTTP see entries for which they lack scopes, and receive a challenge on use.
        every: All scopes that the package's entries require.
    """

    def __init__(self, package: Package) -> None:
        auth: Mapping[str, Any] = package.manifest.get("auth") or {}
        self.challenges: bool = auth.get("onMissing") == "challenge"
        self._required: Sequence[str] = auth.get("requiredScopes") or ()
        self._held: Mapping[str, Sequence[str]] = auth.get("scopes") or {}
        self._package = package
        self._needed = {section: dict(_needed(package, section)) for section in _SECTIONS}
        self._of_section = {
            section: frozenset(scope for scopes in needed.values() for scope in scopes)
            for section, needed in self._needed.items()
        }
        others = {scope for scopes in self._of_section.values() for scope in scopes}
        self.every: Sequence[str] = tuple(dict.fromkeys((*self._required, *sorted(others))))

    def widen(self, principal: Principal) -> Principal:
        """Return a principal with its scopes and all scopes that they imply (`auth: {scopes: {admin: [write]}}`)."""
        return replace(principal, scopes=_closure(principal.scopes, self._held)) if self._held else principal

    def select_relevant(self, principal: Principal, section: str) -> frozenset[str]:
        """Return the principal's scopes that affect which entries a list shows."""
        return principal.scopes & self._of_section[section]

    def find_lacking(self, principal: Principal) -> Sequence[str]:
        """Return the scopes that some entry requires and a principal lacks."""
        return sorted(frozenset[str]().union(*self._of_section.values()) - principal.scopes)

    def allows(self, principal: Principal, section: str, key: str) -> bool:
        """Return whether a principal may use an entry."""
        needed = self._needed[section].get(key)
        return not needed or principal.scopes.issuperset(needed)

    def reaches(self, principal: Principal, uri: str) -> bool:
        """Return whether a principal may be notified of changes to a resource.

        A resource that the principal may not read must appear not to exist.
        """
        if uri in self._package.resources:
            return self.allows(principal, "resources", uri)
        fitting = [
            template for template in self._package.templates if UriTemplate.parse(template).match(uri) is not None
        ]
        return not fitting or any(self.allows(principal, "resourceTemplates", each) for each in fitting)

    def shows(self, principal: Principal, section: str, key: str) -> bool:
        """Return whether a list shows an entry to a principal."""
        return (self.challenges and principal.kind != "local") or self.allows(principal, section, key)

    def find_lacking_of_message(self, principal: Principal, message: object) -> Sequence[str]:
        """Return all scopes that a message's sender needs, or none if the sender already has the required scopes.

        The sender's own scopes are included, because a new token replaces the current one.
        """
        if not is_object(message) or not self.challenges:
            return ()
        targets = [*self._targets(message.get("method"), message.get("params"))]
        if all(self.allows(principal, *target) for target in targets):
            return ()
        needed = [scope for section, key in targets for scope in self._needed[section][key]]
        return tuple(dict.fromkeys((*self._required, *needed)))

    def _targets(self, method: object, params: object) -> Iterator[tuple[str, str]]:
        """Yield the section and the key of each entry that a request uses and whose use requires scopes."""
        several = [(method, params)]
        if method == "subscriptions/listen":
            several = [("resources/subscribe", {"uri": uri}) for uri in _list_subscribed(params)]
        targets = (self._target(*each) for each in several)
        yield from (target for target in targets if target is not None)

    def _target(self, method: object, params: object) -> tuple[str, str] | None:
        match method, params:
            case "tools/call", {"name": str(key)}:
                place = ("tools", self._package.resolve_alias(key))
            case "prompts/get", {"name": str(key)}:
                place = ("prompts", key)
            case "completion/complete", {"ref": {"type": "ref/prompt", "name": str(key)}}:
                place = ("prompts", key)
            case "completion/complete", {"ref": {"type": "ref/resource", "uri": str(key)}}:
                place = ("resourceTemplates", key)
            case "resources/read" | "resources/subscribe", {"uri": str(key)}:
                place = ("resources", key) if key in self._package.resources else self._template(key)
            case _:
                return None
        return place if place[1] in self._needed[place[0]] else None

    def _template(self, uri: str) -> tuple[str, str]:
        """Return the section and key of the first resource template that matches a URI, as `resources/read` does."""
        fits = (template for template in self._package.templates if UriTemplate.parse(template).match(uri) is not None)
        return "resourceTemplates", next(fits, "")


def _list_subscribed(params: object) -> Sequence[Any]:
    wanted = params.get("notifications") if is_mapping(params) else None
    uris = wanted.get("resourceSubscriptions") if is_mapping(wanted) else None
    return uris if is_list(uris) else ()


def _needed(package: Package, section: str) -> Iterable[tuple[str, Sequence[str]]]:
    policies: Mapping[str, Mapping[str, Any]]
    if section == "tools":
        policies = {name: tool.policy for name, tool in package.tools.items()}
    else:
        policies = {key: extension.get("policy") or {} for key, (_, extension) in package.list_entries(section).items()}
    return ((key, policy["scopes"]) for key, policy in policies.items() if policy.get("scopes"))


def _closure(scopes: frozenset[str], held: Mapping[str, Sequence[str]]) -> frozenset[str]:
    all_scopes, waiting = set(scopes), [*scopes]
    while waiting:
        new = {*held.get(waiting.pop(), ())} - all_scopes
        all_scopes |= new
        waiting += new
    return frozenset(all_scopes)
