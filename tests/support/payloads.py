"""Injection strings, and all locations in a manifest that can contain text.

The locations come from the manifest's JSON Schema and, below a schema, from the meta-schema of 2020-12: each string,
and each key that authors choose. `BASE` has a value at each location, and `places` finds them.
"""

from __future__ import annotations

import importlib
import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal
from urllib.parse import quote

import jsonschema

from stubwright.compile import structure

Json = Any
Step = str | int

VOCABULARIES: Any = importlib.import_module("jsonschema_specifications").REGISTRY
MARKER = "PWNED"
RUN = f'__import__("os").system("touch {MARKER}")'

PAYLOADS = {
    "double quotes": f'x"""; {RUN}; """y',
    "single quotes": f"x'''; {RUN}; '''y".replace('"', '\\"'),
    "one double quote": f'x"; {RUN}; "y',
    "one single quote": f"x' + {RUN} + 'y",
    "a quote at both ends": '"x"',
    "four quotes at the end": 'x""""',
    "a backslash at the end": "x\\",
    "a backslash before a quote": f'x\\"""; {RUN}; """',
    "line feed": f"x\n{RUN}\n    y",
    "carriage return": f"x\r{RUN}\ry",
    "both": f"x\r\n{RUN}\r\ny",
    "other line ends": f"x\x0b{RUN}\x0c{RUN}\x1c{RUN}\x85{RUN}\u2028{RUN}\u2029y",
    "a named character": "x\\N{QUOTATION MARK}\\N{QUOTATION MARK}\\N{QUOTATION MARK} \\N{nonsense}",
    "escapes": 'x\\u0022\\x22\\042\\U00000022; \\users\\new \\xZZ "',
    "a path": "C:\\users\\new\\x",
    "braces": f"x{{{RUN}}} {{}} {{0}} {{x!r}} %s %(x)s ${{x}}",
    "an expression of Jinja": f"x{{{{ {RUN} }}}} {{{{ cycler.__init__.__globals__.os.system('touch {MARKER}') }}}}",
    "a statement of Jinja": f"x{{% set x = {RUN} %}}{{# comment #}} {{% raw %}}",
    "a comment": f"x # {RUN} <!-- /* // --",
    "the end of a script": f"x</script></style></title></textarea><script>fetch('{MARKER}')</script>",
    "the end of a comment": f"x--><img src=x onerror=\"fetch('{MARKER}')\"><!--",
    "an attribute": f"x\" autofocus onfocus=\"fetch('{MARKER}')\" x='`",
    "a model's call": f"x.model_validate({RUN}) Field(default_factory=lambda: {RUN})",
    "an alias of YAML": "x: &a *a !!python/object/apply:os.system ['touch PWNED'] | > - ? %TAG",
    "a command": f"x`touch {MARKER}`$(touch {MARKER}); touch {MARKER} | touch {MARKER} && touch {MARKER}",
    "a workflow command": f"x\n::error file=a.py,line=1::{MARKER}%0A::set-env",
    "terminal escapes": "x\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\x9b1m\x08\x7f",
    "bidirectional overrides": "x\u202egnp.exe\u202c\u2066\u2069\u200f\u200b\ufeff",
    "a null": "x\x00y",
    "a form feed": "x\x0cy",
}
"""Texts that try to escape their context, by attack."""

HARMLESS = "plain words"


def in_utf_7(text: str) -> str:
    """Encode a text as UTF-7 without literal quotes."""
    return text.replace('"', "+ACI-")


SCHEMA: Json = structure.load_manifest_schema()
"""The schema of manifests without shorthand, which is expanded before all other steps."""

_SCHEMA: Json = {
    "$id": "https://example.com/x",
    "$comment": "c",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/core": True},
    "$anchor": "top",
    "$dynamicAnchor": "node",
    "$defs": {"Inner": {"title": "t", "type": "string"}},
    "type": "object",
    "title": "t",
    "description": "d",
    "properties": {
        "word": {"enum": ["one", "two"], "default": "one", "description": "d", "title": "t", "examples": ["one"]},
        "fixed": {"const": "always"},
        "again": {"$dynamicRef": "#node"},
        "any": {"type": "string", "format": "email", "pattern": "^a", "contentEncoding": "base64",
                "contentMediaType": "text/plain", "contentSchema": {"title": "t"}, "default": "a"},
        "inner": {"$ref": "#/$defs/Inner"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}, "title": "t"},
                 "prefixItems": [{"title": "t"}], "contains": {"title": "t"}, "unevaluatedItems": {"title": "t"},
                 "default": [{"a": "words"}]},
        "one": {"anyOf": [{"title": "t", "type": "object", "properties": {"kind": {"const": "k"}}}, {"type": "null"}]},
        "either": {"oneOf": [{"title": "t", "type": "string"}, {"type": "integer"}]},
        "both": {"allOf": [{"title": "t", "type": "object"}]},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {"type": "string"}}},
                "patternProperties": {"^p": {"title": "t"}}, "propertyNames": {"title": "t"},
                "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {"title": "t"}},
                "unevaluatedProperties": {"title": "t"}, "default": {"a": {"b": "words"}}},
        "if": {"if": {"title": "t"}, "then": {"title": "t"}, "else": {"title": "t"}, "not": {"const": "no"}},
    },
    "required": ["fixed"],
    "x-unknown": "u",
}  # fmt: skip

_PLAIN: Json = {"type": "object", "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}}}
_HANDLE: Json = {"type": "string", "title": "t", "x-handle": "basket"}
_ICONS: Json = [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"], "x-more": "m"}]
_ASK: Json = {
    "confirm_it": {
        "message": "m",
        "schema": {"type": "object", "properties": {"w": {"type": "string", "title": "t", "description": "d"}}},
        "x-more": "m",
    }
}
_SAID: Json = {"since": "1.0", "use": "list_it", "reason": "r", "x-more": "m"}
_POLICY: Json = {
    "timeout": "10s", "rateLimit": "6/minute", "scopes": ["s"], "maxResultBytes": "1MiB", "maxArgumentBytes": "64KiB",
    "confirm": {"message": "Run it?", "fallback": "allow", "x-more": "m"}, "redact": ["/api_key"], "sanitize": "all",
    "x-more": "m",
}  # fmt: skip

_ONCE: Json = {"key": ["q"], "for": "1h", "onUnknown": "run", "x-more": "m"}

_BIND: Json = {"id": {"claim": "sub", "local": {"env": "USER_ID", "x-more": "m"}, "x-more": "m"}}

_TASK: Json = {"ttl": "1h", "pollInterval": "1s", "most": 10, "lease": "10s", "x-more": "m"}

BASE: Json = {
    "stubwright": 1, "targets": ["mcp"],
    "budget": {"server": 10**6, "toolset": 10**6, "tool": 10**6, "result": 10**6, "x-more": "m"},
    "toolsets": {"part": {"title": "t", "description": "d", "tools": ["*"], "readOnly": False, "x-more": "m"}},
    "server": {
        "name": "sample", "version": "1.0.0", "title": "t", "description": "d", "instructions": "i",
        "websiteUrl": "https://example.com", "icons": _ICONS,
        "capabilities": {"tools": True, "x-more": "m"}, "x-more": "m",
    },
    "python": {"package": "sample_mcp", "handlers": "sample:Sample", "x-more": "m"},
    "include": ["other.json", {"path": "prefixed.json", "prefix": "p_", "x-more": "m"}],
    "schemas": {"Place": {"type": "object", "title": "t", "description": "d", "properties": {"p": {"type": "string"}}},
                "Tone": {"enum": ["dry"]}},
    "apis": {
        "api": {
            "baseUrl": "https://{region}.example.com", "baseUrlEnv": "BASE_URL", "timeout": "5s",
            "maxResponseBytes": "1MiB",
            "clientCertificate": {"certificateEnv": "CERT", "keyEnv": "CERT_KEY", "passwordEnv": "PASS", "x-more": "m"},
            "auth": {
                "key": {"type": "apiKey", "env": "KEY", "in": "header", "name": "X-Key", "x-more": "m"},
                "login": {"type": "basic", "usernameEnv": "USER_NAME", "passwordEnv": "PASS_WORD"},
                "office": {"type": "oauth2", "flow": "authorizationCode", "tokenUrl": "https://example.com/token",
                           "scopes": ["read"], "clientIdEnv": "ID", "clientSecretEnv": "SECRET", "env": "TOKEN",
                           "refreshTokenEnv": "REFRESH", "clientAuth": "body", "x-more": "m"},
                "theirs": {"type": "oauth2", "flow": "tokenExchange", "tokenUrl": "https://example.com/token",
                           "audience": "orders", "resource": "https://example.com", "clientIdEnv": "ID",
                           "env": "TOKEN"},
            },
            "variables": {"region": {"env": "REGION", "default": "eu", "enum": ["eu", "us"], "x-more": "m"}},
            "security": [["key"]], "x-more": "m",
            "headers": {"X-Version": "v", "X-Tenant": {"env": "TENANT", "default": "t", "x-more": "m"}},
            "query": {"lang": "en", "tenant": {"env": "TENANT", "default": "t"}},
            "bind": {"b": {"value": "v"}, "c": {"env": "COOK", "default": "d", "x-more": "m"}},
        }
    },
    "defaults": {"annotations": {"title": "t", "openWorldHint": True, "x-more": "m"}, "x-more": "m"},
    "tools": [
        {
            "name": "do_it", "title": "t", "description": "d", "inputSchema": _SCHEMA,
            "outputSchema": {"$ref": "#/schemas/Place"}, "icons": _ICONS, "_meta": {"k": {"deep": ["words"]}},
            "annotations": {"title": "t", "readOnlyHint": True, "x-more": "m"},
            "execution": {"taskSupport": "optional", "x-more": "m"},
            "stubwright": {
                "policy": _POLICY, "budget": {"result": 10**6, "x-more": "m"}, "ask": _ASK, "task": _TASK,
                "reasons": {"readOnlyHint": "m", "destructiveHint": "m", "idempotentHint": "m", "openWorldHint": "m",
                            "x-more": "m"},
                "pythonName": "do_this", "deprecated": _SAID, "x-more": "m",
                "aliases": [{"name": "did_it", "removeAfter": "9.0.0", "arguments": {"was": "fixed"}, "x-more": "m"}],
                "examples": [{"name": "plain", "description": "d", "input": {"fixed": "always"}, "output": {"p": "v"},
                              "x-more": "m"}],
                "lint": {"ignore": ["SW310"], "x-more": "m"},
            },
            "x-more": "m",
        },
        {
            "name": "call_it", "description": "d",
            "inputSchema": {"type": "object", "properties": {
                name: {"type": "string"} for name in ("id", "q", "h", "c", "b", "api_key")}},
            "stubwright": {"policy": {"once": _ONCE}, "bind": _BIND, "http": {
                "api": "api", "method": "POST", "url": "/v1/{id}", "path": {"id": {"contentType": "text/plain",
                "x-more": "m"}}, "query": {"q": {"value": "{q}", "contentType": "text/plain", "x-more": "m"},
                "fixed": "always"},
                "headers": {"X-Head": "{h}"}, "cookies": {"cook": "{c}"}, "contentType": "application/json",
                "body": {"deep": ["{b}"]},
                "fields": {"deep": {"style": "form", "contentType": "application/json", "x-more": "m"}},
                "accept": "application/json", "security": [["key"]], "idempotencyHeader": "X-Key", "x-more": "m"}},
        },
        {
            "name": "page_it", "description": "d",
            "inputSchema": {"type": "object", "properties": {name: {"type": "string"} for name in ("after", "many")}},
            "stubwright": {"policy": {"once": {"key": "all"}}, "http": {
                "api": "api", "url": "/v1", "query": {"after": "{after}", "many": "{many}"}, "timeout": "5s",
                "maxResponseBytes": "1MiB", "select": ["/rows/*/id"],
                "responseHeaders": {"total": "X-Total", "tag": {"name": "ETag", "x-more": "m"}},
                "page": {"by": "cursor", "argument": "after", "items": "/rows", "next": "/next", "more": "/more",
                         "total": "/total", "limit": "many", "parameters": ["p"], "x-more": "m"}}},
        },
        {
            "name": "send_it", "description": "d",
            "inputSchema": {"type": "object", "properties": {
                "file": {"type": "string", "contentEncoding": "base64"}, "name": {"type": "string"}}},
            "stubwright": {"http": {
                "api": "api", "method": "POST", "url": "/v1", "contentType": "multipart/form-data",
                "parts": {"file": {"filename": "{name}", "contentType": "text/plain", "x-more": "m"}}}},
        },
        {"name": "list_it", "description": "d", "inputSchema": _PLAIN,
         "outputSchema": {"type": "array", "items": {"$ref": "#/schemas/Place"}}},
        {"name": "keep_it", "description": "d",
         "inputSchema": {"type": "object", "properties": {
             "own": _HANDLE, "other": {"$ref": "#/$defs/Id"}, "api_key": {"type": "string"},
             "deep": {"type": "array", "items": {"type": "object", "properties": {"inner": _HANDLE}}}},
             "$defs": {"Id": _HANDLE}},
         "outputSchema": {"type": "object", "properties": {"made": _HANDLE}}},
        {"name": "leaf_it", "description": "d", "inputSchema": _PLAIN,
         "outputSchema": {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "string"}}}},
         "stubwright": {"paginate": {"items": "rows", "size": 5, "x-more": "m"}}},
    ],
    "resources": [
        {
            "uri": "x://a", "name": "a", "title": "t", "description": "d", "mimeType": "text/plain", "icons": _ICONS,
            "annotations": {"audience": ["user"], "lastModified": "2025-01-12T15:00:58Z", "x-more": "m"},
            "_meta": {"k": "v"}, "x-more": "m",
            "stubwright": {"text": "words", "deprecated": {"reason": "r"}, "lint": {"ignore": ["SW310"]},
                           "policy": {"scopes": ["s"], "x-more": "m"}, "x-more": "m"},
        },
        {"uri": "x://b", "name": "b", "stubwright": {"file": "words.txt"}},
        {"uri": "x://c", "name": "c", "description": "d", "stubwright": {"pythonName": "read_that"}},
    ],
    "resourceTemplates": [
        {
            "uriTemplate": "x://t/{city}/{street}", "name": "t", "title": "t", "description": "d",
            "mimeType": "text/plain",
            "annotations": {"audience": ["user"]}, "icons": _ICONS, "_meta": {"k": "v"}, "x-more": "m",
            "stubwright": {"complete": {"city": ["Paris"], "street": "handler"}, "ask": _ASK, "x-more": "m",
                           "pythonName": "read_city", "policy": {"scopes": ["s"]},
                           "deprecated": {"reason": "r"}, "lint": {"ignore": ["SW310"]}},
        }
    ],
    "skills": ["skills"],
    "prompts": [
        {
            "name": "write", "title": "t", "description": "d", "icons": _ICONS, "_meta": {"k": "v"}, "x-more": "m",
            "arguments": [{"name": "code", "title": "t", "description": "d", "required": True, "x-more": "m"},
                          {"name": "tone"}],
            "stubwright": {
                "complete": {"code": ["python"], "tone": {"$ref": "#/schemas/Tone", "x-more": "m"}},
                "deprecated": {"reason": "r"}, "lint": {"ignore": ["SW310"]},
                "policy": {"scopes": ["s"]}, "x-more": "m",
                "messages": [
                    {"role": "user", "text": "{{code}}", "annotations": {"lastModified": "2025-01-12T15:00:58Z"},
                     "x-more": "m"},
                    {"image": {"data": "AAAA", "mimeType": "image/png", "x-more": "m"}},
                    {"image": {"file": "dot.png", "mimeType": "image/png"}},
                    {"audio": {"data": "AAAA", "mimeType": "audio/wav", "x-more": "m"}},
                    {"audio": {"file": "dot.png", "mimeType": "audio/wav"}},
                    {"resource": {"uri": "x://r", "text": "words", "mimeType": "text/plain", "x-more": "m"}},
                    {"resource": {"uri": "x://r", "data": "AAAA"}},
                    {"resource": {"uri": "x://r", "file": "words.txt"}},
                ],
            },
        },
        {"name": "ask", "arguments": [{"name": "self", "description": "d"}],
         "stubwright": {"ask": _ASK, "pythonName": "prompt_asking"}},
    ],
    "overlay": {
        "apis": {"api": {
            "baseUrl": "https://{region}.example.net", "baseUrlEnv": "BASE_URL", "timeout": "6s", "retries": 1,
            "variables": {"region": {"env": "REGION_2"}}, "maxResponseBytes": "2MiB", "output": "lenient",
            "input": "lenient", "clientCertificate": {"keyEnv": "OTHER_KEY"},
            "auth": {"token": {"type": "bearer", "env": "TOKEN"}}, "security": [["token"]],
            "headers": {"X-More": "m"}, "query": {"more": "m"}, "bind": {"q": {"value": "v"}}, "x-more": "m",
        }},
        "tools": {
            "list_it": {"policy": {"confirm": True}},
            "here": {
                "title": "t", "description": "d", "annotations": {"title": "t", "x-more": "m"},
                "inputSchema": {"title": "t"}, "outputSchema": {"type": "object", "title": "t"},
                "pythonName": "is_here", "bind": {"q": _BIND["id"]}, "task": _TASK,
                "examples": [{"name": "plain", "description": "d", "input": {"api_key": "v"}}], "x-more": "m",
            },
        },
        "x-more": "m",
    },
    "handles": {"basket": {
        "state": {"type": "object", "title": "t", "properties": {"w": {"type": "string", "title": "t"}}},
        "ttl": "7d", "idle": "24h", "most": 3, "x-more": "m"}},
    "auth": {"issuer": "https://auth.example.com", "audience": "https://mcp.example.com", "bind": {"id": _BIND["id"]},
             "jwksUri": "https://auth.example.com/keys", "requiredScopes": ["s"], "resource": "https://mcp.example.com/mcp",
             "scopes": {"all": ["s"]}, "onMissing": "challenge", "x-more": "m"},
    "policy": {**_POLICY, "redact": ["/api_key"], "onStateLoss": "closed"},
    "formats": "annotate",
    "client": {"hints": "untrusted", "x-more": "m"},
    "wire": {"refs": "bundled", "x-more": "m"},
    "audit": {"arguments": True, "x-more": "m"},
    "cache": {"ttl": "5m", "scope": "private", "x-more": "m"},
    "storage": {"maxBytesPerPrincipal": "16MiB", "maxBytes": "128MiB", "x-more": "m"},
    "protocol": {"min": "2025-06-18", "x-more": "m"},
    "lint": {"ignore": ["SW301"], "x-more": "m"},
    "diff": {"ignore": ["SW501"], "x-more": "m"},
    "x-more": "m",
}  # fmt: skip

_FRAGMENT: Json = {"tools": [{"name": "there", "description": "d", "inputSchema": _PLAIN}]}
FILES = {
    "other.json": json.dumps(
        {"tools": [{**_FRAGMENT["tools"][0], "name": "here", "execution": {"taskSupport": "required"}}]}
    ),
    "prefixed.json": json.dumps(_FRAGMENT),
    "words.txt": "words",
    "dot.png": "\x00",
    "skills/plain/SKILL.md": "---\nname: plain\ndescription: d\n---\n",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A string in the base manifest. `kind` is value or key, and `rule` is its location in the grammar."""

    rule: tuple[str, ...]
    pointer: tuple[Step, ...]
    kind: Literal["value", "key"]

    def __str__(self) -> str:
        shown = "/".join(map(str, self.pointer))
        return f"{shown} (key)" if self.kind == "key" else shown


def declared() -> set[tuple[str, ...]]:
    """Return all locations in the grammar."""
    return {*_declared(SCHEMA, ())}


def places(value: Json) -> list[Place]:
    """Return all locations in a manifest that have a value."""
    return [*_places(SCHEMA, value, (), ())]


def replace_texts(value: Json, at: Mapping[Place, str]) -> Json:
    """Return a copy of a manifest with other strings at some locations."""
    made = pickle.loads(pickle.dumps(value))  # `copy.deepcopy` takes five times as long
    # Keys last and bottom-up, so that pointers stay valid.
    for place in sorted(at, key=lambda place: (place.kind == "key", -len(place.pointer))):
        holder = made
        for step in place.pointer[:-1]:
            holder = holder[step]
        last = place.pointer[-1]
        if place.kind == "value":
            holder[last] = at[place]
        else:
            prefix = "x-" if str(last).startswith("x-") else ""
            renamed = {prefix + at[place] if key == last else key: each for key, each in holder.items()}
            holder.clear()
            holder.update(renamed)
            for start in _REFERRED.intersection(place.pointer[-2:-1]):
                _refer(made, f"#/{start}/{last}", f"#/{start}/{_escaped(at[place])}")
    return made


_REFERRED = {"schemas", "$defs"}
"""Keywords that hold named schemas, the targets of references."""


def _refer(value: Json, old: str, new: str) -> None:
    """Update the references to a renamed schema."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refer(each, old, new)
    if isinstance(value, dict) and value.get("$ref") == old:
        value["$ref"] = new


def _escaped(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="", errors="surrogatepass")


def _places(rule: Json, value: Json, path: tuple[str, ...], at: tuple[Step, ...]) -> Iterator[Place]:
    rule, path = _resolved(rule, path)
    if _is_open(rule):
        yield from _anywhere(value, path, at)
        return
    if isinstance(value, str):
        if _is_text(rule):
            yield Place(path, at, "value")
        return
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _places(rule.get("items", True), each, (*path, "[]"), (*at, index))
    for key, each in value.items() if isinstance(value, dict) else ():
        if key in rule.get("properties", {}):
            yield from _places(_of(rule, key), each, (*path, key), (*at, key))
            continue
        yield Place((*path, "{key}"), (*at, key), "key")
        others = rule.get("additionalProperties")
        yield from _places(others if isinstance(others, dict) else True, each, (*path, "{}"), (*at, key))


def _anywhere(value: Json, path: tuple[str, ...], at: tuple[Step, ...]) -> Iterator[Place]:
    if isinstance(value, str):
        yield Place(path, at, "value")
    for step, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(step, str):
            yield Place(path, (*at, step), "key")
        yield from _anywhere(each, path, (*at, step))


def _declared(
    rule: Json, path: tuple[str, ...], seen: frozenset[tuple[str, ...]] = frozenset()
) -> Iterator[tuple[str, ...]]:
    rule, path = _resolved(rule, path)
    if path in seen:
        return
    seen |= {path}
    if _is_open(rule):
        yield path
        return
    if _is_text(rule):
        yield path
    if "items" in rule:
        yield from _declared(rule["items"], (*path, "[]"), seen)
    for key in rule.get("properties", {}):
        yield from _declared(_of(rule, key), (*path, key), seen)
    if "object" in _types(rule) and (rule.get("additionalProperties") is not False or "patternProperties" in rule):
        yield (*path, "{key}")
        others = rule.get("additionalProperties")
        yield from _declared(others if isinstance(others, dict) else True, (*path, "{}"), seen)


def _of(rule: Json, key: str) -> Json:
    """Return the rule of a property. The manifest's schema only requires a tool's schemas to be objects."""
    return {"$ref": "#/$defs/schema"} if key in ("inputSchema", "outputSchema") else rule["properties"][key]


def _is_open(rule: Json) -> bool:
    """Return whether any value is valid here."""
    return rule is True or not rule.keys() & {"type", "enum", "const", "properties"}


def _types(rule: Json) -> list[str]:
    given = rule.get("type", "object" if "properties" in rule else [])
    return [given] if isinstance(given, str) else given


def _is_text(rule: Json) -> bool:
    return "string" in _types(rule) and "enum" not in rule and "const" not in rule


def _resolved(rule: Json, path: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
    while isinstance(rule, dict) and "$ref" in rule:
        name = rule["$ref"].removeprefix("#/$defs/")
        rule, path = (_meta_schema(), ("JSON Schema",)) if name == "schema" else (SCHEMA["$defs"][name], (name,))
    return rule, path


@cache
def _meta_schema() -> Json:
    """Return the meta-schema of 2020-12 as one rule: the valid values of each keyword."""
    properties: dict[str, Json] = {}
    for part in jsonschema.Draft202012Validator.META_SCHEMA["allOf"]:
        uri = f"https://json-schema.org/draft/2020-12/{part['$ref']}"
        vocabulary = VOCABULARIES.contents(uri)
        properties |= {key: _inlined(each, vocabulary) for key, each in vocabulary["properties"].items()}
    return {"type": ["object", "boolean"], "properties": properties}


def _inlined(rule: Json, vocabulary: Json) -> Json:
    if not isinstance(rule, dict):
        return rule
    if "$dynamicRef" in rule:
        return {"$ref": "#/$defs/schema"}
    if "$ref" in rule:
        return _inlined(vocabulary["$defs"][rule["$ref"].rpartition("/")[2]], vocabulary)
    return {
        key: (
            {name: _inlined(one, vocabulary) for name, one in each.items()}
            if key == "properties"
            else _inlined(each, vocabulary)
        )
        for key, each in rule.items()
    }
