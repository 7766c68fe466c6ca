"""Broken documents: any value replaced with a value of any type, or with text that is difficult for paths and names."""

from __future__ import annotations

import copy
from random import Random
from typing import Any, Final

Json = Any

TEXTS: Final = [
    *(
        "",
        "\0",
        "a\0b",
        "\ud800",
        "a\udfff",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "/dev/zero",
        "C:\\x",
        "//x",
        ".",
        "~",
    ),
    *(
        "a" * 300,
        "x/" * 300,
        "*",
        "**",
        "**/*",
        "[",
        "{",
        "}",
        "{a}",
        "{{",
        "%",
        "%s",
        "%00",
        "\\",
        "\\u",
        "\n",
        "\r\n",
        "\x1b[0m",
    ),
    *(
        "\u202e",
        "\u2028",
        "é",
        "😀",
        "#",
        "#/",
        "#/$defs/x",
        "#/schemas/Place",
        "a#b",
        "file:///etc/passwd",
        "http://x/",
    ),
    *("http://[", "http://x:99999/", "https://h/{", "urn:x", "1", "1s", "1e999s", "99999999999999999999d", "60/minute"),
    *(
        "9" * 5000 + "s",
        "9" * 5000 + "/minute",
        "(",
        "(?=a)",
        "a{99999999}",
        "[z-a]",
        "\\p{L}",
        "class",
        "self",
        "None",
    ),
    *(
        "__init__",
        "a-b",
        "a.b",
        "a:b",
        ":",
        "a:",
        "x-y",
        "$ref",
        "$id",
        "type",
        "/a/~2",
        "/~1",
        "-",
        "-1",
        "null",
        "SW310",
    ),
    *("application/json", ";", "text/html; charset=", "2026-07-28", "object", "string", "array", "draft-04", "true"),
    "http://json-schema.org/draft-07/schema#",
]
"""Strings with a special meaning in some context, or without a meaning in any."""

NUMBERS: Final = [0, -1, 1, 1.5, -0.0, 10**9, 2**63, 2**64, -(2**70), 10**400, 1e308, 5e-324, 3.0]

OTHERS: Final[list[Json]] = [
    *(
        None,
        True,
        False,
        [],
        {},
        [[]],
        [{}],
        {"": {}},
        [None],
        [""],
        ["a", "a"],
        [1, "a"],
        {"a": None},
        {"a": {"b": []}},
    ),
    *({"$ref": "#"}, {"$ref": "#/$defs/none"}, {"$ref": 1}, {"$ref": "#/schemas/Place"}, {"$ref": "other.json#/a"}),
    *({"type": "object"}, {"type": ["object", "null"]}, {"type": []}, {"type": "strin"}, {"const": {}}, {"enum": []}),
    *({"properties": []}, {"properties": {"": True}}, {"allOf": []}, {"allOf": [False]}, {"not": {}}, {"items": [{}]}),
    *(
        {"x-handle": 1},
        {"x-mcp-header": ""},
        {"$schema": "x"},
        {"$id": "a", "$anchor": "b"},
        {"default": {}},
        {"pattern": "("},
    ),
    *(
        {"stubwright": None},
        {"stubwright": {}},
        {"name": "a"},
        {"file": ".."},
        {"env": ""},
        {"claim": ""},
        {"message": "m"},
    ),
    *({"message": "m", "schema": True}, {"mode": "url", "message": ""}, {"value": None}, {"path": "a"}, {"uri": "a:b"}),
]


def mutate(document: Json, chance: Random, *, times: int = 1) -> Json:
    """Return a copy of a document with a value replaced, renamed, omitted, moved or nested."""
    made = copy.deepcopy(document)
    for _ in range(times):
        made = _once(made, chance)
    return made


def _once(document: Json, chance: Random) -> Json:
    places = list(_places(document, ()))
    at = chance.choice(places)
    if not at:
        return value(chance) if chance.random() < 0.3 else document
    holder = _at(document, at[:-1])
    step = at[-1]
    how = chance.random()
    if how < 0.7:
        holder[step] = value(chance)
    elif how < 0.78:
        holder[step] = copy.deepcopy(_at(document, chance.choice(places)))
    elif how < 0.84:
        del holder[step]
    elif how < 0.88:
        holder[step] = [holder[step]] if chance.random() < 0.5 else {chance.choice(TEXTS): holder[step]}
    elif isinstance(holder, dict):
        new = chance.choice(TEXTS)
        entries = [(new if key == step else key, one) for key, one in holder.items()]
        holder.clear()
        holder.update(entries)
    else:
        holder.insert(chance.randint(0, len(holder)), copy.deepcopy(holder[step]))
    return document


def value(chance: Random) -> Json:
    """Return any JSON value."""
    lists: list[list[Json]] = [[*TEXTS], [*TEXTS], [*NUMBERS], OTHERS, OTHERS]
    return copy.deepcopy(chance.choice(chance.choice(lists)))


def _places(value: Json, at: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    found = [at]
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in steps:
        found += _places(below, (*at, step))
    return found


def _at(value: Json, at: tuple[str | int, ...]) -> Any:
    for step in at:
        value = value[step]
    return value


PLACE: Json = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "at": {"$ref": "#/schemas/Point"}},
}

MANIFEST: Final[Json] = {
    "stubwright": 1,
    "server": {
        "name": "weather",
        "version": "1.2.0",
        "title": "Weather",
        "instructions": "Ask.",
        "websiteUrl": "https://example.com",
        "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}],
        "capabilities": {"resources": True},
    },
    "python": {"package": "weather_mcp", "handlers": "weather:Weather"},
    "include": ["other.json", {"path": "list.json", "prefix": "gh_"}, "more/*.json"],
    "schemas": {
        "Place": PLACE,
        "Point": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]},
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/schemas/Node"}}},
    },
    "apis": {
        "weather": {
            "baseUrl": "https://{region}.example.com/v1",
            "baseUrlEnv": "WEATHER_URL",
            "variables": {"region": {"env": "REGION", "default": "eu", "enum": ["eu", "us"]}},
            "timeout": "5s",
            "retries": 1,
            "maxResponseBytes": "1MiB",
            "auth": {
                "key": {"type": "apiKey", "env": "KEY", "in": "header", "name": "X-Key"},
                "login": {"type": "basic", "usernameEnv": "U", "passwordEnv": "P"},
                "office": {
                    "type": "oauth2",
                    "flow": "authorizationCode",
                    "tokenUrl": "https://auth.example.com/token",
                    "scopes": ["read"],
                    "clientIdEnv": "ID",
                    "clientSecretEnv": "SECRET",
                    "refreshTokenEnv": "REFRESH",
                    "clientAuth": "body",
                    "env": "TOKEN",
                },
            },
            "security": [["key"], ["login"]],
        }
    },
    "tools": [
        {
            "name": "get_weather",
            "title": "Weather",
            "description": "Get the weather.",
            "inputSchema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "place": {"$ref": "#/schemas/Place"},
                    "units": {"enum": ["metric", "imperial"], "default": "metric"},
                    "days": {"type": "integer", "minimum": 1, "maximum": 9, "x-mcp-header": "Days"},
                    "api_key": {"type": "string", "pattern": "^[a-z]+$", "format": "uri", "examples": ["a"]},
                    "basket_id": {"type": "string", "x-handle": "basket"},
                    "node": {"$ref": "#/$defs/Node"},
                },
                "required": ["place"],
                "additionalProperties": False,
                "$defs": {
                    "Node": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Node2"}]},
                    "Node2": {"type": "string"},
                },
            },
            "outputSchema": {
                "type": "object",
                "properties": {"t": {"type": ["number", "null"]}, "kind": {"oneOf": [{"const": "a"}, {"const": "b"}]}},
                "required": ["t"],
                "dependentRequired": {"kind": ["t"]},
                "patternProperties": {"^x-": {"type": "string"}},
            },
            "annotations": {"readOnlyHint": True, "openWorldHint": True, "title": "W"},
            "icons": [{"src": "data:image/png;base64,AA==", "theme": "dark"}],
            "execution": {"taskSupport": "optional"},
            "_meta": {"example.com/x": [1]},
            "stubwright": {
                "policy": {
                    "timeout": "10s",
                    "rateLimit": "60/minute",
                    "scopes": ["weather:read"],
                    "concurrency": 8,
                    "maxResultBytes": "1MiB",
                    "maxArgumentBytes": "64KiB",
                    "confirm": {"fallback": "allow"},
                    "redact": ["/api_key"],
                },
                "ask": {
                    "which": {
                        "message": "Which?",
                        "schema": {
                            "type": "object",
                            "properties": {"c": {"type": "string", "enum": ["a"]}},
                            "required": ["c"],
                        },
                    },
                    "sign_in": {"mode": "url", "message": "Sign in"},
                },
                "examples": [
                    {"name": "plain", "input": {"place": {"city": "Paris"}}, "output": {"t": 1.5}, "exact": True}
                ],
                "pythonName": "get_weather",
                "deprecated": {"since": "1.1.0", "use": "called", "reason": "Old."},
                "lint": {"ignore": ["SW310"]},
            },
        },
        {
            "name": "called",
            "description": "Calls.",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}, "c": {}}},
            "stubwright": {
                "http": {
                    "api": "weather",
                    "method": "POST",
                    "url": "/at/{a}",
                    "path": {"a": {"style": "simple", "explode": False}},
                    "query": {"q": {"value": "{b}", "style": "form", "explode": True}, "z": "1"},
                    "headers": {"X-A": "{a}"},
                    "cookies": {"c": "{a}"},
                    "body": {"c": "{c}", "d": ["{b}"]},
                    "contentType": "application/json",
                    "accept": "application/json",
                    "security": [["key"]],
                }
            },
        },
    ],
    "resources": [
        {
            "uri": "file:///readme.md",
            "name": "readme",
            "mimeType": "text/markdown",
            "stubwright": {"file": "readme.md"},
        },
        {"uri": "weather://all", "name": "all", "size": 5, "stubwright": {"text": "All."}},
    ],
    "resourceTemplates": [
        {
            "uriTemplate": "weather://{city}/now",
            "name": "current",
            "stubwright": {"complete": {"city": ["Paris", "Oslo"]}},
        }
    ],
    "prompts": [
        {
            "name": "review",
            "arguments": [{"name": "code", "required": True, "description": "Code."}, {"name": "language"}],
            "stubwright": {
                "messages": [
                    {"role": "user", "text": "Review:\n{{code}}"},
                    {"role": "assistant", "image": {"file": "i.png", "mimeType": "image/png"}},
                ],
                "complete": {"language": ["python"]},
            },
        }
    ],
    "overlay": {"tools": {"gh_issue": {"policy": {"confirm": True}}}},
    "handles": {"basket": {"state": {"$ref": "#/schemas/Place"}, "ttl": "7d", "idle": "24h", "most": 20}},
    "auth": {
        "issuer": "https://a.example",
        "audience": "https://m.example",
        "jwksUri": "https://a.example/j",
        "requiredScopes": [],
    },
    "policy": {"timeout": "30s", "onStateLoss": "closed"},
    "formats": "annotate",
    "cache": {"ttl": "5m", "scope": "private"},
    "pageSize": 100,
    "skills": ["skills"],
    "wire": {"refs": "bundled"},
    "protocol": {"min": "2025-06-18"},
    "emit": ["server", "client"],
    "lint": {"ignore": ["SW301"]},
    "diff": {"ignore": ["SW501"]},
}
"""A manifest with some of all features of a manifest."""

TOOLS: Final[Json] = {
    "tools": [
        {
            "name": "issue",
            "description": "Makes an issue.",
            "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
            "outputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}},
            "annotations": {"destructiveHint": True},
            "icons": [{"src": "https://example.com/i.png"}],
            "_meta": {"a": 1},
        },
        {"name": "list-issues", "inputSchema": {"type": "object"}},
    ],
    "nextCursor": "x",
    "_meta": {},
}
"""A saved list of tools."""

OPENAPI: Final[Json] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1", "description": "Pets."},
    "servers": [{"url": "https://{host}/v1", "variables": {"host": {"default": "api.example.com"}}}],
    "security": [{"key": []}, {"login": []}],
    "tags": [{"name": "pets"}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "getPet",
                "summary": "A pet.",
                "description": "Gets it.",
                "tags": ["pets"],
                "parameters": [
                    {"name": "q", "in": "query", "style": "deepObject", "explode": True, "schema": {"type": "object"}},
                    {"name": "h", "in": "header", "schema": {"type": "string"}, "example": "a", "deprecated": True},
                    {"name": "c", "in": "cookie", "content": {"application/json": {"schema": {"type": "array"}}}},
                ],
                "responses": {
                    "200": {
                        "description": "",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                    },
                    "404": {"$ref": "#/components/responses/None"},
                },
            },
            "put": {
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
                "responses": {"2XX": {"description": ""}},
                "servers": [{"url": "/v2"}],
                "security": [{}],
            },
        },
        "/files": {
            "post": {
                "operationId": "upload",
                "deprecated": True,
                "requestBody": {
                    "required": True,
                    "content": {
                        "multipart/form-data": {
                            "schema": {"type": "object", "properties": {"f": {"type": "string", "format": "binary"}}},
                            "encoding": {"f": {"contentType": "image/png", "style": "form", "explode": True}},
                        }
                    },
                },
                "responses": {"201": {"content": {"text/plain": {}}}},
            }
        },
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}},
        "responses": {"None": {"description": "None."}},
        "requestBodies": {"Pet": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["kind"],
                "properties": {
                    "kind": {"type": "string", "enum": ["cat", "dog"]},
                    "name": {"type": ["string", "null"], "default": "Tom", "examples": ["Tom"]},
                    "parent": {"$ref": "#/components/schemas/Pet"},
                    "other": {"$ref": "other.json#/schemas/Other"},
                },
                "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat"}},
            },
            "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"lives": {"type": "integer"}}}]},
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "login": {"type": "http", "scheme": "basic"},
            "token": {"type": "oauth2", "flows": {}},
        },
    },
}
"""An OpenAPI document with some of all imported features."""
