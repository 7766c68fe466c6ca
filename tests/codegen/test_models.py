"""Models: readable code, acceptance of all valid instances, and lossless round trips."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import ValidationError

import amounts
import instances
import modules
import packages
import suite
from amounts import choose
from corpus import VARIABLE
from modules import load, made
from stubwright import ir, naming
from stubwright.codegen.models import datamodel
from stubwright.codegen.source import render
from stubwright.codegen.surface import Argument, Class, ClassRole, Field, Type, make_optional, make_plain
from stubwright.pycode import Name, fill, trust

pytestmark = pytest.mark.corpus

WEATHER = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "minLength": 1, "description": "City name or zip code"},
        "units": {"enum": ["metric", "imperial"], "default": "metric"},
    },
    "required": ["location"],
    "additionalProperties": False,
}
HOSTILE = 'a"b\'c """ {{ x }} {% y %} ${z} \\ \x00\n\r\u202e \\N{BULLET}'


def source(arguments: dict[str, Any], result: dict[str, Any] | None = None, name: str = "do_it") -> str:
    return render.format_python(datamodel.make_modules([modules.tool(name, arguments, result)])[0].source)


def of(text: str, name: str) -> str:
    """One class of a module."""
    tree = ast.parse(text)
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return "\n".join(text.splitlines()[found.lineno - 1 : found.end_lineno])


def fields(properties: dict[str, Any], **more: Any) -> list[str]:
    """The lines of the fields of an input with these properties."""
    body = of(source({"type": "object", "properties": properties, **more}), "DoItInput").splitlines()
    return [line.strip() for line in body[1:] if ": " in line and not line.strip().startswith('"""')]


def outcome(cls: Any, instance: Any) -> str | None:
    """What is wrong with a model of this instance, if anything is."""
    try:
        model = cls.model_validate(instance)
    except ValidationError as error:
        return f"refuses {json.dumps(instance)}: {error}"
    for back in (model.model_dump(mode="json"), json.loads(model.model_dump_json())):
        if not instances.same(back, instance):
            return f"gives {json.dumps(back)} for {json.dumps(instance)}"
    return None


def test_a_module_reads_as_if_written_by_hand() -> None:
    assert source(WEATHER, {"type": "array", "items": {"type": "number"}}, "get_weather") == (
        '"""Models of the tool ``get_weather``."""\n'
        "\n"
        "from __future__ import annotations\n"
        "\n"
        "from typing import Literal\n"
        "\n"
        "from stubwright_runtime.generated import Model, Root\n"
        "\n"
        "\n"
        'class GetWeatherInput(Model, extra="forbid"):\n'
        '    """Arguments of the tool ``get_weather``."""\n'
        "\n"
        "    location: str\n"
        '    """City name or zip code. At least 1 character."""\n'
        "\n"
        '    units: Literal["metric", "imperial"] = "metric"\n'
        "\n"
        "\n"
        "class GetWeatherOutput(Root[list[float]]):\n"
        '    """Result of the tool ``get_weather``."""'
    )


def test_what_a_module_tells_the_rest_of_the_package() -> None:
    wire = {
        "type": "object",
        "properties": {
            "x-y": {"type": ["string", "null"], "description": "One."},
            "place": {"type": "object", "properties": {"lat": {"type": "number"}}},
            "unit": {"enum": ["a"], "default": "a"},
        },
        "required": ["unit", "place"],
    }
    module = datamodel.make_modules([modules.tool("do_it", wire)])[0]
    place, literal, text = Name("DoItInputPlace"), fill('Literal["a"]'), fill("str")
    lat = Field("lat", Name("lat"), make_optional(Type(fill("float"), (fill("float"),))), fill("None"), "")
    assert module.classes == (
        Class(
            Name("DoItInput"),
            frozenset({"input"}),
            True,
            (
                Field("x-y", Name("x_y"), Type(fill("Nullable[str]"), (fill("Nullable[str]"),)), fill("None"), "One."),
                Field("place", Name("place"), make_plain(place), None, ""),
                Field("unit", Name("unit"), Type(literal, (literal,), frozenset({Name("Literal")})), None, ""),
            ),
            modules.PLACE,
        ),
        Class(place, frozenset({"input"}), False, (lat,), modules.PLACE),
    )
    assert module.parameters == (
        Argument("place", Name("place"), make_plain(place), True, False, "", None),
        Argument("unit", Name("unit"), Type(literal, (literal,), frozenset({Name("Literal")})), True, False, "", None),
        Argument("x-y", Name("x_y"), Type(fill("str | None"), (text, fill("None"))), False, True, "One.", None),
    )


@pytest.mark.parametrize(
    ("wire", "line"),
    [
        ({"type": "number"}, "x: float | None = None"),
        ({"type": ["integer", "null"]}, "x: Nullable[int] = None"),
        ({"type": "integer", "default": 3.0}, "x: int = 3"),
        ({"type": "string", "default": None}, "x: str | None = None"),
        ({"type": ["string", "null"], "default": None}, "x: Nullable[str] = None"),
        ({"type": ["string", "null"], "default": "a"}, 'x: str | None = "a"'),
        ({"type": "integer", "default": "a"}, "x: int | None = None"),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]},
            'x: list[Literal["a", "b"]] = Field(default=["a"])',
        ),
        ({}, "x: Nullable[Any] = None"),
        (True, "x: Nullable[Any] = None"),
        (False, "x: Nullable[Any] = None"),
        ({"type": "null"}, "x: Nullable[None] = None"),
        ({"enum": [1, True, "a", None]}, 'x: Nullable[Literal[1, True, "a"]] = None'),
        ({"enum": ["-INF", "+1", ""]}, 'x: Literal["-INF", "+1", ""] | None = None'),
        ({"enum": [-(2**63) + 1, 2**63 - 1]}, "x: Literal[-9223372036854775807, 9223372036854775807] | None = None"),
        ({"enum": [2**63]}, "x: int | None = None"),
        ({"enum": [-(2**63)]}, "x: int | None = None"),
        ({"const": 1e15}, "x: Literal[1000000000000000] | None = None"),
        ({"const": 1e300}, "x: float | None = None"),
        ({"type": "integer", "default": 1e22}, "x: int = 10000000000000000000000"),
        ({"type": "integer", "default": 1e23}, "x: int | None = None"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "x: dict[str, int] | None = None"),
        ({"items": {"type": "string"}}, "x: Nullable[list[str] | Any] = None"),
        (
            {
                "type": "array",
                "items": {"type": "array", "prefixItems": [{}, {"const": 1}], "minItems": 2, "maxItems": 2},
            },
            "x: list[tuple[Any, Literal[1]]] | None = None",
        ),
    ],
)
def test_fields(wire: Any, line: str) -> None:
    assert fields({"x": wire}) == [line]


def test_docstrings_say_what_a_type_cannot() -> None:
    properties = {
        "a": {"type": "string", "description": "A name.", "minLength": 2, "maxLength": 9, "pattern": "^a\\d"},
        "b": {"type": "integer", "minimum": 1, "exclusiveMaximum": 5, "multipleOf": 2},
        "c": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1, "uniqueItems": True},
        "d": {"type": "string", "default": None, "description": "Two\nlines"},
        "e": {"enum": [1.5, {"a": 1}]},
        "g": {"const": 2**63},
        "f": {"type": "object", "additionalProperties": False, "required": ["k"], "maxProperties": 1},
    }
    (made_class,) = ast.parse(of(source({"type": "object", "properties": properties}), "DoItInput")).body
    assert isinstance(made_class, ast.ClassDef)
    said = [node.value for node in made_class.body[1:] if isinstance(node, ast.Expr)]
    assert [each.value for each in said if isinstance(each, ast.Constant)] == [
        "A name. 2\u20139 characters. Pattern: `^a\\d`.",
        "Minimum: 1. Less than 5. Multiple of 2.",
        "At least 1 item. Items are unique. Each item: format: uri.",
        "Two\n    lines\n\n    The schema's default, null, is not of this type.\n    ",
        'One of 1.5, {"a": 1}.',
        "Always 9223372036854775808.",
        "At most 1 key. Requires `k`.",
    ]


def test_docstrings_are_silent_about_keywords_of_other_dialects() -> None:
    old = {"minProperties": 1, "deprecated": True}
    new = {"const": 2.5, "contentEncoding": "base64", "if": {}, "dependentRequired": {"a": ["b"]}}
    wire = {"type": "object", "properties": {"x": {**old, **new}}}
    always, further = "Always 2.5.", "The schema has additional constraints."
    for uri, said in (
        ("http://json-schema.org/draft-04/schema#", []),
        ("http://json-schema.org/draft-06/schema#", [always]),
        (DRAFT_7, ["Encoded as base64.", always, further]),
        (modules.LATEST, ["Encoded as base64.", always, "`a` requires `b`.", further]),
    ):
        (parameter,) = datamodel.make_modules([modules.tool("do_it", {"$schema": uri, **wire})])[0].parameters
        assert parameter.doc == " ".join(["At least 1 key.", *said, "Deprecated."])


def test_nested_classes_are_called_by_where_they_stand() -> None:
    thing = {"type": "object", "properties": {"a": {"type": "string"}}}
    wire = {
        "type": "object",
        "properties": {
            "place": thing,
            "people": {"type": "array", "items": {"type": "object", "properties": {"b": {"$ref": "#/$defs/Deep"}}}},
            "either": {
                "anyOf": [{"type": "object", "title": "First", "properties": {"n": {"type": "integer"}}}, thing]
            },
            "mixed": {"anyOf": [thing, {"type": "array", "items": {"type": "object", "properties": {"c": {}}}}]},
            "kind": {
                "oneOf": [
                    {"type": "object", "properties": {"type": {"const": "circle"}, "r": {"type": "number"}}},
                    {"type": "object", "properties": {"type": {"const": "square"}, "w": {"type": "number"}}},
                ]
            },
        },
        "$defs": {"Deep": {"type": "object", "properties": {"deeper": {"$ref": "#/$defs/Deep"}}}},
    }
    made_of = datamodel.make_modules([modules.tool("do_it", wire)])[0]
    assert set(made_of.names) == {
        "DoItInput",
        "DoItInputPlace",
        "DoItInputPeople",
        "DoItDeep",
        "DoItInputEitherFirst",
        "DoItInputEitherWithA",
        "DoItInputMixed",
        "DoItInputMixedItem",
        "DoItInputKindCircle",
        "DoItInputKindSquare",
    }


POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
LABEL = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def pair(*places: Any, **more: Any) -> dict[str, Any]:
    """A list with these items and no others."""
    return {"type": "array", "prefixItems": [*places], "items": False, "minItems": len(places), **more}


def test_tuples_hold_classes() -> None:
    properties = {
        "pair": pair(POINT, LABEL),
        "pairs": {"type": "array", "items": pair(POINT, {"type": ["string", "null"]})},
        "one": pair({"enum": ["a"]}, POINT),
        "known": pair({"$ref": "#/$defs/Place"}, {"type": "array", "items": {"$ref": "#/$defs/Place"}}),
        "same": pair(POINT, POINT),
        "deep": pair(pair(POINT, {}), {"type": "object", "additionalProperties": LABEL}),
        "open": {"type": "array", "prefixItems": [POINT, LABEL]},
    }
    defs = {"Place": {"type": "object", "properties": {"near": pair({"$ref": "#/$defs/Place"}, {"type": "number"})}}}
    wire = {"type": "object", "properties": properties, "$defs": defs}
    assert fields(properties, **{"$defs": defs}) == [
        "pair: tuple[DoItInputPairItem0, DoItInputPairItem1] | None = None",
        "pairs: list[tuple[DoItInputPairs, str | None]] | None = None",
        'one: tuple[Literal["a"], DoItInputOne] | None = None',
        "known: tuple[DoItPlace, list[DoItPlace]] | None = None",
        "same: tuple[DoItInputSame, DoItInputSame] | None = None",
        "deep: tuple[tuple[DoItInputDeepItem0Item0, Any], dict[str, DoItInputDeepItem1Value]] | None = None",
        "open: list[DoItInputOpenItem0 | DoItInputOpenItem1 | Any] | None = None",
    ]
    module, loaded = made(wire)
    point, label = {"x": 1, "more": None}, {"text": ""}
    good: list[dict[str, Any]] = [
        {"pair": [point, label], "pairs": [[point, None], [point, "a"]], "one": ["a", point]},
        {"known": [{"near": [{}, 1.0]}, [{}, {"near": [{"a": 1}, 2**53 + 1]}]]},
        {"deep": [[point, None], {"a": label}], "open": [point, label, 1]},
    ]
    for each in good:
        assert outcome(loaded.DoItInput, each) is None
    first, second = loaded.DoItInput.model_validate(good[0]).pair
    assert (first.x, second.text) == (1, "")
    assert "DoItInputPairItem0" in module.names


def test_tuples_of_draft_7_and_as_results() -> None:
    old = {"$schema": DRAFT_7, "type": "array", "items": [POINT, {"$ref": "#/definitions/L"}], "additionalItems": False}
    result = {**old, "minItems": 2, "definitions": {"L": LABEL}}
    text = source({"type": "object"}, result)
    assert "class DoItOutput(Root[tuple[DoItOutputItem0, DoItL]]):" in text
    assert "Item 0 of the result." in of(text, "DoItOutputItem0")
    _, loaded = made({"type": "object"}, result)
    assert outcome(loaded.DoItOutput, [{"x": 1}, {"text": "a", "b": [None]}]) is None


def test_a_tuple_of_models_may_be_a_default() -> None:
    wire = pair(POINT, {"type": "string"}, default=[{"x": 1}, "a"])
    _, loaded = made({"type": "object", "properties": {"x": wire}})
    value = loaded.DoItInput()
    assert isinstance(value.x, tuple)
    assert value.model_dump(mode="json") == {}
    value.x[0].x = 2
    assert value.model_dump(mode="json") == {"x": [{"x": 2}, "a"]}


def test_tuples_that_hold_themselves() -> None:
    """Below an object a tuple stays one; where the whole value is one, its type would be read before its class is."""
    tree = pair({"type": "string"}, {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]}, POINT)
    text = source({"type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}, tree)
    assert "tree: tuple[str, DoItTreeItem1, DoItTreeItem2] | None = None" in text
    defs = {"Tree": tree}
    _, loaded = made(
        {"type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}, "$defs": defs}, {**tree, "$defs": defs}
    )
    value = ["a", ["b", None, {"x": 1.5}], {"x": 2, "y": 3}]
    assert outcome(loaded.DoItInput, {"tree": value}) is None
    assert outcome(loaded.DoItOutput, value) is None


def test_names_do_not_depend_on_the_order_of_keys() -> None:
    def shuffled(value: Any, chance: random.Random) -> Any:
        if isinstance(value, dict):
            keys = [*value]
            chance.shuffle(keys)
            return {key: shuffled(value[key], chance) for key in keys}
        return [shuffled(item, chance) for item in value] if isinstance(value, list) else value

    inner = {"type": "object", "properties": {"v": {"$ref": "#/$defs/V"}, "StartTime<": {}, "StartTime>": {}}}
    forms = [
        {"type": "object", "properties": {"z": {"const": "shape"}, "a": {"const": name}, "k": {"const": f"{name}s"}}}
        for name in ("circle", "square")
    ]
    more = [{"type": "object", "properties": dict.fromkeys(names, True)} for names in ("ab", "abdfe")]
    wire = {
        "type": "object",
        "properties": {
            "a": inner,
            "a_b": {"anyOf": [inner, {"items": inner}]},
            "c": {"$ref": "#/properties/a_b"},
            "forms": {"anyOf": forms},
            "more": {"anyOf": more},
        },
        "$defs": {"V": {"type": "object", "properties": {"a": inner}}},
    }

    def described(arguments: dict[str, Any]) -> dict[str, set[str]]:
        tree = ast.parse(source(arguments))
        return {
            node.name: {ast.unparse(each) for each in node.body} for node in tree.body if isinstance(node, ast.ClassDef)
        }

    expected = described(wire)
    named = {"DoItInputFormsCircle", "DoItInputFormsSquare", "DoItInputMore", "DoItInputMoreWithDAndE"}
    assert named <= expected.keys()
    for seed in range(5):
        assert described(shuffled(wire, random.Random(seed))) == expected


def test_odd_names() -> None:
    names = ["self", "ctx", "schema", "copy", "model_config", "__x", "{{userName}}", "", "🎉", "class", "from", "Field"]
    names += [
        "StartTime",
        "StartTime<",
        "StartTime>",
        "order_by",
        "orderBy",
        "fill-opacity",
        "$and",
        "root",
        "str",
        "a.b",
    ]
    names += ["DoItInput", "Optional", "__stubwright_wire__", "model_fields_set", "1st", "json", "cast", "Root"]
    module, loaded = made({"type": "object", "properties": {name: {"type": "integer"} for name in names}})
    everything = {name: number for number, name in enumerate(names)}
    model = getattr(loaded, modules.root(module)).model_validate(everything)
    assert model.model_dump(mode="json") == everything
    by_python = {each.name: everything[each.wire] for each in module.parameters}
    assert getattr(loaded, modules.root(module))(**by_python).model_dump(mode="json") == everything
    assert {each.wire: each.name for each in module.parameters} == dict(naming.name_fields(names))


def test_text_never_becomes_code() -> None:
    wire = {
        "type": "object",
        "description": HOSTILE,
        "properties": {
            HOSTILE: {"enum": [HOSTILE, "b"], "default": HOSTILE, "description": HOSTILE},
            "nested": {"type": "object", "title": HOSTILE, "properties": {"a": {"const": HOSTILE}}},
            "half": {"enum": ["\ud800"], "default": "\ud800"},
            "\ud800": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string"}, "default": [HOSTILE], "description": f"{HOSTILE}\\"},
        },
    }
    text = source(wire, name="do_it")
    assert render.format_python(trust(text)) == text
    module = datamodel.make_modules([modules.tool("do_it", wire)])[0]
    cls = getattr(load(module), modules.root(module))
    assert cls().list_ == [HOSTILE]
    assert outcome(cls, {HOSTILE: "b", "nested": {"a": HOSTILE}}) is None
    assert next(each for each in module.parameters if each.wire == HOSTILE).type.text.startswith("Literal[")


@pytest.fixture(scope="module")
def things() -> ModuleType:
    wire = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "may-be-null": {"type": ["string", "null"]},
            "no-null": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
            "place": {"$ref": "#/$defs/Place", "default": {"lat": 1}},
            "count": {"type": "integer", "default": 5},
            "either": {"anyOf": [{"$ref": "#/$defs/Place"}, {"$ref": "#/$defs/Other"}, {"type": "integer"}]},
            "next": {"$ref": "#"},
        },
        "required": ["name"],
        "$defs": {
            "Place": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
            "Other": {"type": "object", "properties": {"lat": {"type": "string"}}},
        },
    }
    return made(wire, name="thing")[1]


def test_absent_and_null(things: ModuleType) -> None:
    thing = things.ThingInput
    absent, null = thing.model_validate({"name": "x"}), thing.model_validate({"name": "x", "may-be-null": None})
    assert absent.may_be_null is None
    assert null.may_be_null is None
    assert "may_be_null" in null.model_fields_set
    assert "may_be_null" not in absent.model_fields_set
    assert null.model_dump(mode="json") == {"name": "x", "may-be-null": None}
    assert thing(name="x", no_null=None, may_be_null=None).model_dump() == {"name": "x", "may-be-null": None}
    absent.no_null = None
    assert absent.model_dump() == {"name": "x"}
    with pytest.raises(ValidationError, match="Input should be a valid string"):
        thing.model_validate({"name": "x", "no-null": None})


def test_defaults_apply_and_what_differs_from_them_goes_out(things: ModuleType) -> None:
    thing = things.ThingInput(name="x")
    assert (thing.tags, thing.count, thing.place.lat) == (["a"], 5, 1)
    assert thing.model_dump(mode="json") == {"name": "x"}
    thing.tags.append("b")
    thing.place.lon = 2.5
    assert thing.model_dump(mode="json") == {"name": "x", "tags": ["a", "b"], "place": {"lat": 1, "lon": 2.5}}
    assert things.ThingInput(name="x", count=5).model_dump() == {"name": "x", "count": 5}
    assert things.ThingInput(name="x").tags == ["a"]


def test_a_default_that_would_hold_itself_is_told_in_words() -> None:
    nodes = {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    wire = {
        "type": "object",
        "properties": {"to": {"$ref": "#/$defs/To", "default": {}}, "top": {"$ref": "#/$defs/Node", "default": {}}},
        "$defs": {
            "To": {"type": "object", "properties": {"back": {"$ref": "#", "default": {}}, "next": {"$ref": "#"}}},
            "Node": {"type": "object", "properties": {"nodes": {**nodes, "default": [{"nodes": []}]}}},
        },
    }
    module, loaded = made(wire)
    assert loaded.DoItInput().to is None
    assert loaded.DoItTo().back is None
    assert of(module.source, "DoItInput").count("The schema's default, {}, would contain itself.") == 1
    assert loaded.DoItInput().top.nodes[0].nodes == []
    values: list[Any] = [{}, {"to": {}}, {"to": {"back": {"to": {}}}}, {"top": {}}]
    for value in values:
        assert outcome(loaded.DoItInput, value) is None


def test_an_extra_key_that_is_a_field_in_python_stays_an_extra(things: ModuleType) -> None:
    thing = things.ThingInput.model_validate({"name": "x", "may_be_null": 1, "no_null": None})
    assert thing.may_be_null is None
    assert thing.model_extra == {"may_be_null": 1, "no_null": None}
    assert thing.model_dump() == {"name": "x", "may_be_null": 1, "no_null": None}
    both = {"name": "x", "may_be_null": 1, "may-be-null": None}
    assert things.ThingInput.model_validate(both).model_dump() == both


def test_models_are_ordinary_objects(things: ModuleType) -> None:
    thing = things.ThingInput.model_validate(
        {"name": "x", "extra": [1], "next": {"name": "y", "next": {"name": "z"}}, "either": {"lat": "10"}}
    )
    assert isinstance(thing.either, things.ThingOther)
    assert thing == copy.deepcopy(thing) == thing.model_copy() == pickle.loads(pickle.dumps(thing))
    assert thing.next.next.name == "z"
    built = things.ThingInput.model_construct(name="x", may_be_null="n", other=1)
    assert built.model_dump() == {"name": "x", "may-be-null": "n", "other": 1}
    changed = thing.model_copy(update={"no_null": "q"})
    assert changed.model_dump()["no-null"] == "q"
    assert changed.model_dump(by_alias=False)["no_null"] == "q"
    properties = things.ThingInput.model_json_schema()["$defs"]["ThingInput"]["properties"]
    assert properties["may-be-null"]["default"] is None


@pytest.mark.parametrize(
    ("wire", "good", "bad"),
    [
        ({"type": "integer"}, [1, 1.0, 2**53 + 1, 1e300, -(10**30)], [True, "1", 1.5, None]),
        ({"type": "number"}, [1, 1.0, 2**53 + 1, 1e300, 10**400, 0.1], [True, "1"]),
        ({"type": "boolean"}, [True, False], [1, 0, "true"]),
        ({"type": "string"}, ["", "1"], [1, True]),
        ({"enum": [1, "a"]}, [1, 1.0, "a"], [True, "1"]),
        ({"enum": [True]}, [True], [1]),
        ({"enum": [1e300, 2**70]}, [1e300, 2**70], [True, "1"]),
        ({"enum": [4611686018427388000]}, [4611686018427388000, 4.611686018427388e18], [1, 1.5]),
        ({"type": ["boolean", "integer", "string"]}, [True, 1, 1.0, "1", "true"], [1.5]),
        ({"anyOf": [{"const": 1}, {"type": "boolean"}]}, [1, True, False], [0]),
    ],
)
def test_nothing_is_coerced(wire: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    _, loaded = made({"type": "object", "properties": {"x": wire}})
    for value in good:
        assert outcome(loaded.DoItInput, {"x": value}) is None
    for value in bad:
        with pytest.raises(ValidationError):
            loaded.DoItInput.model_validate({"x": value})


@pytest.mark.parametrize("text", ["1e22", "1e23", "1e300", "4.611686018427388e18", "-1e23", "1.0", "9007199254740993"])
def test_a_number_stays_the_same_in_json(text: str) -> None:
    """Digits count in JSON, so that 1e23 must not become the integer that the float 1e23 happens to be."""
    wire = {"type": "object", "properties": {"i": {"type": "integer"}, "e": {"enum": [json.loads(text)]}}}
    _, loaded = made(wire)
    value = json.loads(f'{{"i": {text}, "e": {text}}}')
    dumped = loaded.DoItInput.model_validate(value).model_dump(mode="json")
    assert {key: Decimal(json.dumps(each)) for key, each in dumped.items()} == dict.fromkeys("ie", Decimal(text))


def test_a_model_that_would_change_an_instance_is_not_chosen_over_one_that_keeps_it() -> None:
    one = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {}}}
    two = {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}
    _, loaded = made({"type": "object", "properties": {"either": {"anyOf": [one, two]}}})
    for inner in ({"x": "10", "y": 1}, {"x": None, "y": 1}, {"x": 1.0, "y": None}):
        assert outcome(loaded.DoItInput, {"either": inner}) is None


@pytest.mark.parametrize(
    ("wire", "good"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]}, ["a", [["a"], []]]),
        ({"type": "array", "items": {"$ref": "#"}}, [[], [[], [[]]]]),
        ({"type": "object", "additionalProperties": {"$ref": "#"}}, [{}, {"a": {"b": {}}}]),
        ({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}, [{"a": {"a": None}}]),
        ({"type": ["array", "null"], "items": {"type": "object", "properties": {"a": {}}}}, [None, [{"a": 1}]]),
        ({"properties": {"a": {"type": "string"}}}, [1, None, {"a": "b"}, [1]]),
        ({}, [1, None, {"a": [1]}]),
        (
            {"$schema": DRAFT_7, "$ref": "#/definitions/a", "type": "object", "definitions": {"a": {"type": "null"}}},
            [None],
        ),
    ],
)
def test_results_of_any_shape(wire: dict[str, Any], good: list[Any]) -> None:
    module, loaded = made({"type": "object"}, wire)
    for value in good:
        assert outcome(getattr(loaded, modules.root(module, "output")), value) is None


def test_objects_without_properties_are_classes_at_the_root_and_dicts_below_it() -> None:
    for closed in (True, False):
        wire: dict[str, Any] = {"type": "object", "additionalProperties": not closed}
        text = source(wire, wire)
        bases = 'Model, extra="forbid"' if closed else "Model"
        assert of(text, "DoItInput").startswith(f"class DoItInput({bases}):")
        assert of(text, "DoItOutput").startswith(f"class DoItOutput({bases}):")
    _, loaded = made({"type": "object"}, {"type": "object", "additionalProperties": {"$ref": "#"}})
    assert outcome(loaded.DoItInput, {"a": 1}) is None
    assert outcome(loaded.DoItOutput, {"a": {"b": {}}}) is None


def test_shared_schemas_are_imported() -> None:
    place = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"$ref": "#/$defs/Size"}}}
    size = {"type": "object", "properties": {"w": {"type": "number"}}}
    kind = {"enum": ["a", "b"]}
    pointers = {"#/$defs/Size": "Size"}
    shared = (
        ir.SharedSchema(
            "Place", naming.name_shared("Place"), modules.schema({**place, "$defs": {"Size": size}}, pointers)
        ),
        ir.SharedSchema("Size", naming.name_shared("Size"), modules.schema(size)),
        ir.SharedSchema("Kind", naming.name_shared("Kind"), modules.schema(kind)),
    )
    wire = {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/Place"}, "kind": {"$ref": "#/$defs/Kind"}},
        "$defs": {"Place": place, "Size": size, "Kind": kind},
    }
    pointers = {"#/$defs/Place": "Place", "#/$defs/Size": "Size", "#/$defs/Kind": "Kind"}
    module = datamodel.make_modules([modules.tool("do_it", wire, shared=pointers)], datamodel.find_homes(shared))[0]
    assert module.names == ("DoItInput",)
    assert {name for each in module.parameters for name in each.type.names} == {"Kind", "Place"}
    assert "from .shared.place import Place\n" in module.source
    made = datamodel.make_shared_modules(shared)
    assert [*made.of] == ["Place", "Size", "Kind"]
    assert not made.circles
    made_place, made_size, made_kind = made.of.values()
    assert "from stubwright_runtime.generated import Model\n\nfrom .size import Size\n" in made_place.source
    load(made_kind, "shared.kind")
    load(made_size, "shared.size")
    load(made_place, "shared.place")
    load(made_kind, "shared.kind")
    loaded = load(module)
    assert outcome(loaded.DoItInput, {"place": {"name": "x", "size": {"w": 1, "h": 2}}, "kind": "a"}) is None


def test_shared_schemas_that_lead_to_each_other_are_in_one_module() -> None:
    person = {"type": "object", "properties": {"pet": {"$ref": "#/$defs/Pet"}}}
    pet = {"type": "object", "properties": {"owner": {"$ref": "#/$defs/Person"}}}
    both = {"Person": person, "Pet": pet}
    pointers = {"#/$defs/Person": "Person", "#/$defs/Pet": "Pet"}
    shared = [
        ir.SharedSchema(
            name, naming.name_shared(name), modules.schema({**wire, "$defs": both}, pointers), circle="Person"
        )
        for name, wire in both.items()
    ]
    made = datamodel.make_shared_modules(shared)
    assert {name: module.names for name, module in made.of.items()} == {"Person": ("Person",), "Pet": ("Pet",)}
    assert [*made.circles] == ["_person_circle"]
    load(made.circles[Name("_person_circle")], "shared._person_circle")
    loaded = load(made.of["Person"], "shared.person")
    assert outcome(loaded.Person, {"pet": {"owner": {"pet": {}}}}) is None
    owner = loaded.Person.model_validate({"pet": {"owner": {}}}).pet.owner
    assert type(owner) is loaded.Person
    assert load(made.of["Pet"], "shared.pet").Pet is type(loaded.Person.model_validate({"pet": {}}).pet)


def tools_of(corpus: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((corpus / "tools").glob("*.json")):
        yield from json.loads(path.read_text("utf-8"))["tools"]


RICH = pytest.mark.parametrize("rich", [False, True], ids=["text", "rich"])
FORMS: tuple[dict[str, str], ...] = (
    *({"format": form} for form in instances.TEXTS if form != "base64"),
    {"contentEncoding": "base64"},
)


def formatted(schema: Any, chance: random.Random) -> Any:
    """Return a schema with formats wherever strings are unrestricted, so that rich models have values to parse."""
    if isinstance(schema, list):
        return [formatted(each, chance) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {
        keyword: (
            {name: formatted(each, chance) for name, each in value.items()}
            if keyword in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict)
            else value
            if keyword in ("default", "const", "enum", "examples")
            else formatted(value, chance)
        )
        for keyword, value in schema.items()
    }
    kinds = schema.get("type")
    takes_any = not schema.keys() & {"enum", "const", "format", "pattern", "contentEncoding"}
    if takes_any and (kinds == "string" or (isinstance(kinds, list) and "string" in kinds)):
        changed |= chance.choice(FORMS)
    return changed


def test_formats_are_added_where_strings_stand() -> None:
    properties = {"type": {"type": "string"}, "default": {"enum": ["a"]}, "n": {"type": "integer"}}
    changed = formatted({"type": "object", "properties": properties, "default": {"type": "string"}}, random.Random(1))
    added = {**changed["properties"]["type"]}
    assert added.pop("type") == "string"
    assert added in FORMS
    properties["type"] = changed["properties"]["type"]
    assert changed == {"type": "object", "properties": properties, "default": {"type": "string"}}


@pytest.mark.parametrize("rich", amounts.sample([False, True], 1), ids=["text", "rich"])
def test_real_tools(corpus: Path, rich: bool) -> None:
    """Models of public servers' tools refuse and lose nothing, and `Any` stands only where a schema names no type."""
    wrong: list[str] = []
    loose: list[str] = []
    drawn = 0
    wires = [*tools_of(corpus)][:: choose(VARIABLE, 80, 12, 1)]
    for wire in wires if rich else ():
        chance = random.Random(wire["name"])
        wire |= {key: formatted(wire[key], chance) for key in ("inputSchema", "outputSchema") if key in wire}
    tools = (modules.tool(wire["name"], wire["inputSchema"], wire.get("outputSchema"), rich=rich) for wire in wires)
    for wire, (module, loaded) in zip(wires, modules.make_modules(tools), strict=True):
        if not rich:
            loose += any_without_reason(module, wire)
        schemas: Mapping[ClassRole, Any] = {"input": wire["inputSchema"], "output": wire.get("outputSchema")}
        for role, bare in schemas.items():
            if bare is None:
                continue
            name = modules.root(module, role)
            for instance in instances.valid(bare, f"{wire['name']} {name}", 20):
                if role == "output" or isinstance(instance, dict):
                    drawn += 1
                    wrong += filter(None, [outcome(getattr(loaded, name), instance)])
    assert not wrong, wrong[:3]
    assert not loose
    assert drawn > 500


def any_without_reason(module: datamodel.ModelModule, wire: Mapping[str, Any]) -> Iterator[str]:
    """Return the parameters with `Any` although their schemas have a type, or describe items or properties."""
    properties = wire["inputSchema"].get("properties") or {}
    for each in module.parameters:
        named = properties.get(each.wire)
        if each.type.text == "Any" and isinstance(named, dict) and "type" in named:
            yield f"{wire['name']}.{each.wire}"


@RICH
@pytest.mark.parametrize("draft", amounts.sample(suite.DRAFTS, 3))
def test_official_suite(corpus: Path, draft: str, rich: bool) -> None:
    """Valid cases of JSON-Schema-Test-Suite, as structured results and below a property."""
    wrong: list[str] = []
    dialect = suite.DRAFTS[draft]
    uri = dialect.uri
    cases = [
        (path.stem, case)
        for path in suite.files(corpus, draft, "**/*.json")
        for case in json.loads(path.read_text("utf-8"))
    ][:: choose(VARIABLE, 48 if rich else 16, 1, 1)]
    tools = []
    for number, (stem, case) in enumerate(cases):
        plain = case["schema"] if isinstance(case["schema"], dict) else {"allOf": [case["schema"]]}
        below = {"$schema": uri, "type": "object", "properties": {suite.VALUE: suite.rebase(case["schema"], dialect)}}
        tools.append(modules.tool(f"{stem}_{number}", below, {"$schema": uri, **plain}, rich=rich))
    for (stem, case), (module, loaded) in zip(cases, modules.make_modules(tools), strict=True):
        for test in case["tests"]:
            if test["valid"]:
                results = [
                    outcome(getattr(loaded, modules.root(module)), {suite.VALUE: test["data"]}),
                    outcome(getattr(loaded, modules.root(module, "output")), test["data"]),
                ]
                wrong += [f"{stem}: {case['description']}: {result}" for result in results if result]
    assert not wrong, wrong[:3]


NAMES = ("a", "b", "a-b", "a_b", "class", "copy", "x", "self", "1", "", "Field", "StartTime", "StartTime<")
TYPES = ("string", "integer", "number", "boolean", "null", "array", "object", "object", "array")


def random_schema(chance: random.Random, depth: int) -> Any:
    if depth > 3 or chance.random() < 0.06:
        references = [{"$ref": place} for place in ("#", "#/$defs/A", "#/$defs/B", "#/$defs/List", "#/properties/a")]
        return chance.choice(
            [{"type": "string"}, {"type": "integer"}, {"enum": ["a", 1, True, None]}, {}, True, *references]
        )
    made_of: dict[str, Any] = {}
    if chance.random() < 0.8:
        made_of["type"] = (
            chance.sample(TYPES, chance.choice((1, 1, 2))) if chance.random() < 0.4 else chance.choice(TYPES)
        )
    types = made_of.get("type", ("object", "array"))
    if chance.random() < 0.12:
        members = ["a", "b", 1, 2, True, False, None, 1.5, "1", [1], {"a": 1}, 0]
        made_of["enum"] = chance.sample(members, chance.randint(1, 4))
    if "object" in types:
        made_of["properties"] = {
            chance.choice(NAMES): random_schema(chance, depth + 1) for _ in range(chance.randint(0, 3))
        }
        made_of["required"] = chance.sample(NAMES, chance.choice((0, 0, 1)))
        made_of["additionalProperties"] = chance.choice((True, True, False, random_schema(chance, depth + 1)))
        if chance.random() < 0.1:
            made_of["patternProperties"] = {"^x": random_schema(chance, depth + 1)}
    if "array" in types and chance.random() < 0.3:
        made_of["prefixItems"] = [random_schema(chance, depth + 1) for _ in range(chance.randint(1, 3))]
        made_of |= chance.choice(({}, {"items": False, "minItems": len(made_of["prefixItems"])}))
    elif "array" in types:
        made_of["items"] = random_schema(chance, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if chance.random() < 0.1:
            made_of[keyword] = [random_schema(chance, depth + 1) for _ in range(chance.randint(1, 3))]
    if chance.random() < 0.05:
        made_of |= {"if": random_schema(chance, depth + 1), "then": random_schema(chance, depth + 1)}
    if chance.random() < 0.15:
        made_of["default"] = chance.choice(("a", 1, None, [], {}, [1], {"a": "b"}, True, 1.0))
    if chance.random() < 0.05:
        made_of["$ref"] = chance.choice(("#/$defs/A", "#/$defs/B"))
    return made_of


@pytest.mark.parametrize("formats", ["text", "rich", "strict"])
@pytest.mark.parametrize("seed", amounts.sample(list(range(choose(VARIABLE, 12, 60, 400))), 2))
def test_random_schemas(seed: int, formats: str) -> None:
    chance = random.Random(seed)
    defs = {
        "A": random_schema(chance, 1),
        "B": random_schema(chance, 1),
        "List": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/List"}}]},
    }
    properties = {name: random_schema(chance, 1) for name in ("a", *chance.sample(NAMES, 4))}
    arguments: Any = {"type": "object", "properties": properties, "$defs": defs}
    if chance.random() < 0.4:
        arguments["oneOf"] = [random_schema(chance, 2), random_schema(chance, 2)]
    result = random_schema(chance, 0)
    outer: Any = {**(result if isinstance(result, dict) else {}), "$defs": defs, "properties": {"a": True}}
    if formats != "text":
        arguments, outer = formatted(arguments, chance), formatted(outer, chance)
    module, loaded = made(arguments, outer, f"random_{seed}", rich=formats != "text", exact=formats == "strict")
    assert getattr(loaded, modules.root(module))
    for name, wire in ((modules.root(module), arguments), (modules.root(module, "output"), outer)):
        for instance in instances.valid(wire, f"{seed} {name}", 15, exact=formats == "strict"):
            if name != modules.root(module) or isinstance(instance, dict):
                assert outcome(getattr(loaded, name), instance) is None


def random_values(chance: random.Random, depth: int = 0) -> Any:
    """Values of a mapping, among them objects around them, which are open or mappings, and shared ones."""
    kinds: list[Any] = [
        *({"$ref": f"#/$defs/{name}"} for name in ("open", "map", "list")),
        *({"$ref": f"#/schemas/{name}"} for name in ("Frag", "Word")),
        *({"type": "string", "format": form} for form in ("date", "uuid", "uri")),
        *({"type": "null"}, {"enum": ["a", "|", "Frag | None", 1]}, {"type": "integer"}),
    ]
    if depth < 3 and chance.random() < 0.4:
        wrapped = random_values(chance, depth + 1)
        return chance.choice([{"type": "array", "items": wrapped}, {"type": "object", "additionalProperties": wrapped}])
    if depth < 3 and chance.random() < 0.6:
        return {"anyOf": [random_values(chance, depth + 1) for _ in range(chance.randint(2, 4))]}
    return chance.choice(kinds)


@pytest.mark.long
@RICH
def test_ruff_finds_nothing_in_random_packages(rich: bool, tmp_path: Path) -> None:
    frag = {"type": "object", "properties": {"a": {"type": "string"}}}
    value = packages.manifest([], schemas={"Frag": frag, "Word": {"enum": ["a", "b"]}})
    value["python"] = {"formats": "rich" if rich else "text"}
    seeds = choose(VARIABLE, 10, 40, 300)
    for seed in range(seeds):
        chance = random.Random(seed)
        x = {"type": "string"}
        sides = [
            {
                "type": "object",
                "properties": {name: {"$ref": f"#/$defs/{name}"} for name in chance.sample(("open", "map", "list"), 2)},
                "additionalProperties": random_values(chance),
                "$defs": {
                    "open": {"type": "object", "properties": {"x": x}, "additionalProperties": random_values(chance)},
                    "map": {"type": "object", "additionalProperties": random_values(chance)},
                    "list": {"type": "array", "items": random_values(chance)},
                },
            }
            for _ in range(2)
        ]
        value["tools"].append({"name": f"t{seed}", "inputSchema": sides[0], "outputSchema": sides[1]})
    assert [str(found) for found in packages.check(tmp_path, value) if found.severity == "error"] == []
    package = packages.generate(tmp_path, value)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", package]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    texts = [path.read_text("utf-8") for path in (tmp_path / package / "models").glob("*.py")]
    assert sum("OpenModel[" in text for text in texts) > seeds / 2
    with packages.imported(tmp_path, package) as module:
        for number, entry in enumerate(module.TOOLS.values()):
            assert entry.Input.model_validate({}).model_dump(mode="json") == {}, number


def test_pydantic_can_say_the_schema_of_what_goes_out() -> None:
    """Frameworks such as FastAPI ask for it."""
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "array", "items": {"const": 1}}}}
    cls = made(schema)[1].DoItInput
    assert cls.model_json_schema(mode="serialization") == cls.model_json_schema(mode="validation")
    assert {*cls.model_json_schema()["properties"]["a"]["enum"]} == {1, 2}


def test_an_object_beside_null_as_a_whole_result_has_a_name() -> None:
    nullable = {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}}
    text = source({"type": "object"}, nullable)
    assert of(text, "DoItOutput").startswith("class DoItOutput(Root[DoItOutputObject | None]):")


def test_classes_around_types_are_in_the_order_in_which_python_reads_them() -> None:
    """Two that hold each other, where the first of them is met within a class that holds both."""
    itself = {"$ref": "#/$defs/A"}
    forms = [
        {"properties": {"d": {"oneOf": [itself]}}},
        {"type": "array", "items": itself},
        {"additionalProperties": {"anyOf": [itself]}},
    ]
    inner = {"properties": {"a": {"additionalProperties": itself}}}
    schema = {"type": "object", "properties": {"v": inner}, "$defs": {"A": {"oneOf": forms}}}
    module, loaded = modules.made(schema, name="read_at_once")
    value = {"v": {"a": {"x": [[{"d": []}], {"d": {"d": [1]}}]}}}
    assert getattr(loaded, modules.root(module)).model_validate(value).model_dump(mode="json") == value
