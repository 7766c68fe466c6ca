"""Valid schemas that are difficult to represent in Python, with values to validate."""

from __future__ import annotations

from typing import Any, Final

from stubwright.jsonschema.dialects import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09

Json = Any

S: Json = {"type": "string"}
I: Json = {"type": "integer"}  # noqa: E741 - a table of schemas is read by columns
N: Json = {"type": "number"}
Z: Json = {"type": "null"}


def thing(properties: Json, **more: Json) -> Json:
    """Return an object schema with these properties."""
    return {"type": "object", "properties": properties, **more}


def list_of(*places: Json, **more: Json) -> Json:
    """Return a list schema with exactly these items."""
    return {"type": "array", "prefixItems": [*places], "items": False, "minItems": len(places), **more}


A, B = thing({"a": S}, required=["a"]), thing({"b": I})

CONSTANTS: Final[list[Json]] = [
    {"const": {"a": 1, "b": [True, None]}},
    {"const": [1, 2.0, "x"]},
    *({"const": value} for value in (1.0, True, 0, 1.5, None, "", "x", 2**63, 1e300)),
    {"enum": [1, 1.5, True, "1", None, [], {}]},
    {"enum": [0, False]},
    {"enum": [1, True, 1.5]},
    {"enum": [{"a": 1}, {"a": 2}]},
    {"enum": [10**30, 2**53 + 1, -(2**63)]},
    {"enum": ["", "\0", "\u2028", "\U0001f600", 'q"\\\n']},
    {"enum": [-0.0, 1e16]},
    {"type": "integer", "enum": [1, 1.5, "a"]},
    {"type": ["integer", "null"], "enum": [1, None]},
    {"type": "object", "enum": [{"a": 1}]},
    {"type": "integer", "const": 3.0},
    {"type": "string", "const": 5},
]
COMBINED: Final[list[Json]] = [
    {"allOf": [S, I]},
    {"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]},
    {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}, {"not": {"const": 2}}]},
    {"allOf": [thing({"a": S}), thing({"a": I})]},
    {"allOf": [A, thing({"b": I}, additionalProperties=False)]},
    {"allOf": [thing({"a": thing({"x": S})}), thing({"a": thing({"y": I}, required=["y"])})]},
    {"allOf": [{"anyOf": [A, S]}, {"anyOf": [B, I]}]},
    {"allOf": [{"type": "array", "items": S}, {"prefixItems": [{"const": "a"}, {}], "items": False, "minItems": 2}]},
    {"allOf": [list_of(A, B), {"type": "array", "items": thing({"z": I})}]},
    {"oneOf": [I, N]},
    {"oneOf": [S, {"type": "string", "maxLength": 2}]},
    {"oneOf": [thing({"k": {"const": 1}}, required=["k"]), thing({"k": {"const": True}}, required=["k"])]},
    {"oneOf": [thing({"k": {"const": "a"}, "v": I}), thing({"k": {"const": "b"}, "v": S}, required=["k"])]},
    {"anyOf": [A, B, {"type": "object"}]},
    {"anyOf": [{"type": "array", "items": I}, {"type": "array", "items": N}, {"type": "array"}]},
    {"anyOf": [False, S]},
    {"anyOf": [thing({"a": S}, additionalProperties=False), B, S, {"type": "array", "items": S}]},
    {"type": "object", "properties": {"a": S, "b": I}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"type": "integer", "not": {"enum": [0]}, "oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]},
]
CONDITIONS: Final[list[Json]] = [
    *({"not": schema} for schema in (S, {"type": ["string", "null"]}, {"not": I}, {"required": ["a"]})),
    thing({"a": {"not": {}}}),
    thing({"a": S}, dependentSchemas={"a": thing({"b": I}, required=["b"])}),
    thing({}, dependentSchemas={"a": False}),
    thing({"a": S, "b": S}, dependentRequired={"a": ["b"]}),
    thing({"a": S}, unevaluatedProperties=False),
    {"type": "object", "allOf": [{"properties": {"a": S}}], "unevaluatedProperties": I},
    {"type": "object", "anyOf": [A, B], "unevaluatedProperties": False},
    {"type": "array", "prefixItems": [S], "unevaluatedItems": I},
    {"type": "array", "contains": A, "minContains": 0, "maxContains": 1},
    {"if": thing({"k": {"const": 1}}), "then": thing({"v": S}), "else": thing({"v": I})},
    {"if": S, "then": {"minLength": 2}, "else": I},
    {"then": S},
]
REFERENCES: Final[list[Json]] = [
    {"$ref": "#/$defs/a", "type": "integer", "$defs": {"a": {"type": ["string", "integer"]}}},
    {"$ref": "#/$defs/a", "unevaluatedProperties": False, "properties": {"z": I}, "$defs": {"a": A}},
    {"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [S, {"type": "array", "items": {"$ref": "#/$defs/t"}}]}}},
    {"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [thing({"l": {"$ref": "#/$defs/t"}}, required=["l"]), Z]}}},
    {"$ref": "#/$defs/t", "$defs": {"t": thing({"p": list_of({"$ref": "#/$defs/t"}, S)})}},
    {"$ref": "#/$defs/t", "$defs": {"t": list_of(S, {"anyOf": [{"$ref": "#/$defs/t"}, Z]}, A)}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": thing({"n": {"$ref": "#/$defs/a"}})}},
    thing({"a": {"$ref": "#/$defs/a~1b"}, "b": {"$ref": "#/$defs/%25"}}, **{"$defs": {"a/b": A, "%": B, "": S}}),
    thing({"i": {"$ref": "#/$defs/Input"}, "j": {"$ref": "#/$defs/in-put"}}, **{"$defs": {"Input": A, "in-put": B}}),
    {"$dynamicAnchor": "node", **thing({"next": {"$dynamicRef": "#node"}, "v": I})},
    {"$anchor": "top", **thing({"n": {"$ref": "#top"}})},
]
KEYS: Final[list[Json]] = [
    {"type": "object", "patternProperties": {"^x-": I, "^y": {"type": "array", "items": S}}},
    thing({"x-a": S}, patternProperties={"^x-": {"minLength": 1}}, additionalProperties=N),
    thing({"a": I}, patternProperties={"a": S}),
    {"type": "object", "patternProperties": {"^a": False}},
    {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": I},
    {"type": "object", "additionalProperties": {"anyOf": [S, {"type": "object", "additionalProperties": I}, Z]}},
    thing({"": I}, required=["", "zz"]),
    thing({"a": False, "b": True}),
    thing(dict.fromkeys(("StartTime", "StartTime<", "StartTime>", "start_time", "start-time", "START_TIME"), S)),
    thing(
        dict.fromkeys(
            ("\u00e9", "e\u0301", "\ufb01", "fi", "\u00b5", "\u03bc", "K", "\u212a", "x\u00b2", "x2", "\u0663"), S
        )
    ),
    thing(dict.fromkeys(("a b", "a-b", "a_b", "a.b", "a/b", "a~b", 'a"b', "a\\b", "a\nb", "{{a}}", "$a", "🎉"), S)),
    thing(dict.fromkeys(("self", "ctx", "schema", "copy", "model_config", "__x", "__class__", "None", "list"), I)),
    thing(dict.fromkeys(("\u0928\u093e\u092e", "\u0e0a\u0e37\u0e48\u0e2d", "a\u00b7b", "register", "mro"), I)),
    thing({"\u0130l": thing({"\u01f0": thing({"a": S})})}),
    thing(dict.fromkeys(("root", "json", "Any", "Field", "cast", "OMIT", "model_fields_set", "__dict__", "type"), I)),
    thing({"a": thing({"b": S}), "aB": S, "a_b": thing({"c": I}), "A": thing({"b": thing({"c": I})})}),
    thing({"item": {"type": "array", "items": A}, "Item": thing({"item": B})}),
    thing({"$ref": S, "$id": S, "$schema": S, "type": S, "properties": S, "$defs": thing({})}),
]
TUPLES: Final[list[Json]] = [
    list_of(A, B),
    list_of(A, A),
    list_of(list_of(thing({"x": I}))),
    {"type": "array", "items": list_of(S, B)},
    {"type": "array", "prefixItems": [A, I], "items": B, "minItems": 3, "maxItems": 3},
    {"anyOf": [list_of(S, I), list_of(I, S), list_of(A, B), Z]},
    {"type": "array", "prefixItems": [A]},
    {"type": "array", "prefixItems": [True, False], "minItems": 1, "maxItems": 1},
]
DEFAULTS: Final[list[Json]] = [
    *({"type": "integer", "default": value} for value in ("x", None, True, 1.5, 3.0, 1e23)),
    {"type": "array", "items": I, "default": [1, "a"]},
    thing({"a": I}, default={"a": "z"}),
    thing({"a": I}, additionalProperties=False, default={"b": 1}),
    {"type": "array", "items": thing({"a": I}), "default": [{"a": 1}, {"b": 2}]},
    {"type": "object", "additionalProperties": B, "default": {"k": {"b": 1}}},
    {"anyOf": [B, A], "default": {"a": "x"}},
    list_of(A, I, default=[{"a": "x"}, 1]),
    {"type": "number", "default": 10**400},
    {"enum": ["a", "b"], "default": "c"},
    {"default": {"a": [1, {"b": None}]}},
]
PLAIN: Final[list[Json]] = [
    True,
    {},
    {"type": ["object", "array", "null"], "properties": {"a": I}, "items": S},
    {"properties": {"a": I}, "items": S, "minLength": 3},
    {"type": ["string", "number", "integer", "boolean", "object", "array", "null"]},
    {"type": "string", "contentEncoding": "base64", "contentSchema": thing({"a": I})},
    *({"type": "string", "format": form} for form in ("binary", "byte", "date-time", "duration", "ipv4", "uuid")),
    {"type": "integer", "format": "date-time"},
    {"type": "integer", "minimum": -(10**30), "maximum": 10**30},
    {"type": "number", "multipleOf": 0.01},
    {"type": "integer", "multipleOf": 2.5},
    {"type": "string", "maxLength": 10**20, "minLength": 1.0},
    {"type": "string", "pattern": "^(?=.*\\d)(?!.*(.)\\1).{2,5}$"},
    {"type": "string", "description": '*/ """ ${x} {{y}} \\N{BULLET} \\', "title": "\u202e", "deprecated": True},
]
DIALECTS: Final[list[Json]] = [
    {"$schema": DRAFT_7.uri, "$ref": "#/definitions/a", "type": "integer", "definitions": {"a": S}},
    {"$schema": DRAFT_7.uri, "type": "object", "dependencies": {"a": ["b"], "c": thing({"d": I}, required=["d"])}},
    {"$schema": DRAFT_7.uri, "type": "array", "items": [A, I], "additionalItems": False, "minItems": 2},
    {"$schema": DRAFT_7.uri, "type": "array", "items": [S], "additionalItems": B},
    {"$schema": DRAFT_7.uri, "$id": "#top", **thing({"n": {"$ref": "#top"}})},
    {"$schema": DRAFT_6.uri, "if": S, "then": False},
    {"$schema": DRAFT_6.uri, **thing({"a": {"const": 1}}), "propertyNames": {"maxLength": 3}},
    {"$schema": DRAFT_4.uri, **thing({"a": {"minimum": 0, "exclusiveMinimum": True}, "b": {"const": 3}})},
    {"$schema": DRAFT_4.uri, "id": "http://example.com/s", **thing({"n": {"$ref": "#"}})},
    {"$schema": DRAFT_4.uri, "type": "integer"},
    {"$schema": DRAFT_2019_09.uri, "$recursiveAnchor": True, **thing({"n": {"$recursiveRef": "#"}, "v": I})},
    {"$schema": DRAFT_2019_09.uri, "type": "array", "items": [A, I], "additionalItems": False, "minItems": 2},
]
SCHEMAS = [*CONSTANTS, *COMBINED, *CONDITIONS, *REFERENCES, *KEYS, *TUPLES, *DEFAULTS, *PLAIN, *DIALECTS]

VALUES: Final[list[Json]] = [
    *(None, True, False, 0, 1, 1.0, -1, 1.5, -0.0, 2, 3, 3.0, 2**53 + 1, -(2**63), 2**63, 10**30, 1e16, 1e23, 1e300),
    *("", "a", "ab", "1", "x", "2020-01-01T00:00:00Z", "\0", "\u2028", "\U0001f600", 'q"\\\n'),
    *([], [1], [1.0], ["a"], ["a", "b"], [1, "a"], ["a", 1], [None], [[]], [{}], [1, 2.0, "x"], [{"a": "x"}]),
    *([{"a": "x"}, {"b": 1, "z": None}], [{"a": "x"}, {"a": "y"}], [{"a": "x", "q": None}, 1], [[{"x": 1}]]),
    *([["s", {"b": 1}]], [{"a": "x"}, 1, {"b": 2}], ["s", None, {"a": ""}], ["s", ["t", None, {"a": ""}], {"a": "b"}]),
    *({}, {"a": 1}, {"a": 1.0}, {"a": "x"}, {"a": None}, {"b": 1}, {"a": "x", "b": "y"}, {"a": "x", "b": 1}),
    *({"a": 1, "b": [True, None]}, {"a": {"x": "s", "y": 2}}, {"a": {"b": "x"}, "extra": [1]}, {"": 1, "zz": None}),
    *({"k": 1, "v": "s"}, {"k": "a", "v": 1}, {"k": True}, {"x-a": "q"}, {"x-b": 1, "y": ["a"]}, {"n": {"n": {}}}),
    *({"l": None}, {"l": {"l": None}}, {"next": {"next": {"v": 1.0}}}, {"p": [{"p": [{}, "s"]}, "s"]}, {"c": {"d": 1}}),
    *({"self": 1, "json": 2}, {"a_b": "x"}, {"model_fields_set": 1}, {"extra": {"deep": [1, {"z": None}]}}),
]
