"""Recursive shared schemas: detected in one pass, rendered as one class each, and usable at run time in linear time."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pydantic
import pytest
from packaging.version import Version

import packages
from memory import load
from packages import tool
from stubwright.codegen.models import datamodel
from stubwright.codegen.surface import Class
from stubwright.compile import rules
from stubwright.compile.lower import lower
from stubwright.compile.resolve import resolve
from stubwright.jsonschema.cycles import find_cycles
from stubwright.pycode import Name, fill

ROOT = Path(__file__).parents[2]
SHARED: dict[str, Any] = {
    "Person": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "secret": {"type": "string"},
            "pets": {"$ref": "#/schemas/Pets"},
            "home": {"type": "object", "properties": {"guest": {"$ref": "#/schemas/Person"}}},
        },
        "required": ["name"],
    },
    "Pets": {"type": "array", "items": {"$ref": "#/schemas/Pet"}},
    "Pet": {
        "type": "object",
        "properties": {
            "owner": {"anyOf": [{"$ref": "#/schemas/Person"}, {"type": "null"}]},
            "toys": {"type": "object", "additionalProperties": {"$ref": "#/schemas/Toy"}},
        },
    },
    "Toy": {
        "allOf": [
            {"type": "object", "properties": {"size": {"$ref": "#/schemas/Size"}}},
            {"properties": {"fan": {"oneOf": [{"$ref": "#/schemas/Person"}, {"$ref": "#/schemas/Pet"}]}}},
        ]
    },
    "Size": {"type": "object", "properties": {"width": {"type": "number"}}},
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/schemas/Node"}}},
    "Left": {"type": "object", "properties": {"right": {"$ref": "#/schemas/Right"}}},
    "Right": {"type": "object", "properties": {"left": {"$ref": "#/schemas/Left"}, "one": {"$ref": "#/schemas/Toy"}}},
}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/schemas/{name}"}


def result(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"it": ref(name)}}


TOOLS = [
    tool("get_person", {"like": ref("Person")}, outputSchema=result("Person")),
    tool("get_pet", {"id": {"type": "string"}}, outputSchema=result("Pet")),
    tool("get_node", outputSchema=result("Node")),
    tool("get_left", outputSchema=result("Left")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("circles")
    packages.generate(made, packages.manifest(TOOLS, schemas=SHARED))
    return made


def test_circles_are_what_leads_to_each_other() -> None:
    draws = random.Random(1)
    for _ in range(200):
        size = draws.randint(1, 8)
        steps = {here: draws.sample(range(size), draws.randint(0, min(size, 3))) for here in range(size)}
        reached = {here: {here} for here in steps}
        for _ in steps:
            for here in steps:
                reached[here] |= {far for near in steps[here] for far in reached[near]}
        found = find_cycles(steps)
        assert sorted(member for members in found for member in members) == [*steps]
        assert all(reached[one] >= {*members} for members in found for one in members)
        for before, after in combinations(found, 2):
            assert reached[before[0]].isdisjoint(after)


def test_a_circle_may_be_long() -> None:
    steps = {here: [(here + 1) % 5000] for here in range(5000)}
    assert [len(members) for members in find_cycles(steps)] == [5000]


def test_a_class_exists_once(folder: Path) -> None:
    shared = folder / "sample_mcp" / "models" / "shared"
    assert sorted(path.stem for path in shared.glob("*.py")) == [
        *("__init__", "_left_circle", "_person_circle"),
        *("left", "node", "person", "pet", "right", "size", "toy"),
    ]
    text = "".join(path.read_text() for path in folder.rglob("models/**/*.py"))
    for name in ("Person", "PersonHome", "Pet", "Toy", "Size", "Node", "Left", "Right"):
        assert text.count(f"\nclass {name}(") == 1
    assert text.count("\nclass ") == 8 + 8
    assert 'from ._person_circle import Person, PersonHome\n\n__all__ = ["Person", "PersonHome"]\n' in text
    with packages.imported(folder, "sample_mcp") as package:
        person, pet = package.TOOLS["get_person"], package.TOOLS["get_pet"]
        one = person.Output.model_validate({"it": {"name": "A", "pets": [{}]}})
        other = pet.Output.model_validate({"it": {"owner": {"name": "B"}}})
        assert type(one.it) is type(other.it.owner) is package.models.Person
        assert type(one.it.pets[0]) is type(other.it) is package.Pet
        assert importlib.import_module("sample_mcp.models.shared.person").Person is package.Person


def test_what_goes_in_comes_out(folder: Path) -> None:
    toy = {"size": {"width": 1}, "fan": {"owner": None, "toys": {"a": {"fan": {"name": "C"}}}}}
    values = [
        (
            "get_person",
            {"name": "A", "pets": [{"toys": {"x": toy, "y": {}}, "more": 1}], "home": {"guest": {"name": "B"}}},
        ),
        ("get_pet", {"owner": {"name": "A", "pets": []}, "toys": {"b": toy}}),
        ("get_node", {"next": {"next": {"next": {}}}}),
        ("get_left", {"right": {"left": {"right": {}}, "one": toy}}),
    ]
    with packages.imported(folder, "sample_mcp") as package:
        for name, value in values:
            made = package.TOOLS[name].Output.model_validate({"it": value})
            assert made.model_dump(mode="json") == {"it": value}
        assert isinstance(made.it.right.one.fan, package.Pet)
        assert package.Person(name="A", pets=[package.Pet(owner=None)]).model_dump(mode="json") == {
            "name": "A",
            "pets": [{"owner": None}],
        }


def test_nothing_is_loaded_before_it_is_used(folder: Path) -> None:
    with packages.imported(folder, "sample_mcp") as package:
        assert package.TOOLS["get_node"].Input is not None
        assert not any("circle" in name for name in sys.modules if name.startswith("sample_mcp"))


@pytest.mark.long
def test_type_checkers_see_one_class(folder: Path, mypy: list[str]) -> None:
    (folder / "use.py").write_text(
        "from sample_mcp import GetPersonOutput, GetPetOutput, Person, Pet\n"
        "from sample_mcp.models.shared.person import Person as Same\n"
        "def use(one: GetPersonOutput, other: GetPetOutput) -> tuple[Person | None, list[Pet] | None]:\n"
        "    owner: Same | None = other.it.owner if other.it else None\n"
        "    return owner, one.it.pets if one.it else None\n"
    )
    found = subprocess.run([*mypy, "use.py", "sample_mcp/models"], cwd=folder, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_what_is_redacted_in_a_circle_is_not_shown(tmp_path: Path) -> None:
    secretive = tool("keep", {"pet": ref("Pet")}, stubwright={"policy": {"redact": ["/pet/owner/secret"]}})
    packages.generate(tmp_path, packages.manifest([secretive], name="secretive", schemas=SHARED))
    with packages.imported(tmp_path, "secretive_mcp") as package:
        owner = {"name": "A", "secret": "hidden"}
        made = package.TOOLS["keep"].Input.model_validate({"pet": {"owner": owner, "toys": {"x": {"fan": owner}}}})
        assert "hidden" not in repr(made)
        assert "'A'" in repr(made)
        assert made.model_dump(mode="json")["pet"]["owner"] == owner


def test_a_schema_that_joins_a_circle_changes_its_module_alone(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    more = {**SHARED, "Zoo": {"type": "object", "properties": {"pet": ref("Pet")}}}
    joined = {**more, "Pet": {**SHARED["Pet"], "properties": {**SHARED["Pet"]["properties"], "zoo": ref("Zoo")}}}
    for made, schemas in ((before, more), (after, joined)):
        made.mkdir()
        packages.generate(made, packages.manifest(TOOLS, schemas=schemas))
    shared = "sample_mcp/models"
    changed = {
        path.relative_to(after / shared).as_posix()
        for path in (after / shared).rglob("*.py")
        if path.read_text() != (before / shared / path.relative_to(after / shared)).read_text()
    }
    assert changed == {"shared/_person_circle.py", "shared/zoo.py"}


def large(size: int) -> dict[str, Any]:
    def leading(number: int) -> dict[str, str]:
        return ref(f"thing_{number % size}")

    schemas = {
        f"thing_{number}": {
            "type": "object",
            "properties": {"next": leading(number + 1), "all": {"type": "array", "items": leading(3 * number)}},
        }
        for number in range(size)
    }
    return packages.manifest(
        [tool(f"get_{at}", outputSchema=result(f"thing_{at}")) for at in range(3)], schemas=schemas
    )


def _unwritten(draft: Any) -> datamodel.ModelModule:
    """A module whose classes are planned, and not written."""
    classes = [Class(plan.name, plan.roles, plan.is_root, (), draft.place) for plan in draft.plans]
    return datamodel.ModelModule(fill(""), tuple(classes), ())


def work(size: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many of our functions are called for a number of shared schemas, without functions that write text."""
    monkeypatch.setattr(datamodel, "_module", _unwritten)
    bundle = load("m.json", **{"m.json": json.dumps(large(size))})
    calls = 0

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and "stubwright" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        resolved = resolve(bundle)
        assert not [found for found in rules.check(resolved) if found.severity == "error"]
        manifest = lower(resolved, "m.json")
        homes = datamodel.find_homes(manifest.shared)
        datamodel.make_shared_modules(manifest.shared, homes)
        datamodel.make_modules(manifest.tools, homes)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.long
def test_the_work_grows_as_the_circle_does(monkeypatch: pytest.MonkeyPatch) -> None:
    small, middle, big = (work(size, monkeypatch) for size in (40, 80, 160))
    assert big - middle < 2.2 * (middle - small)


@pytest.mark.long
def test_a_long_circle_is_read(tmp_path: Path) -> None:
    recurses = Version(pydantic.VERSION) < Version("2.14")  # docs/ci.md, "Python and libraries"
    size = 120 if recurses else 300
    package = packages.generate(tmp_path, large(size))
    with packages.imported(tmp_path, package) as made:
        value: dict[str, Any] = {"it": {"next": {"next": {"all": [{"next": {}}]}}}}
        assert made.TOOLS["get_0"].Output.model_validate(value).model_dump(mode="json") == value
        assert getattr(made, f"Thing{size - 1}")(next=made.Thing0()).model_dump(mode="json") == {"next": {}}


def test_classes_that_name_each_other_in_a_long_chain_are_sorted() -> None:
    names = [Name(f"D{number}") for number in range(5000)]
    chain = {name: [following] for name, following in zip(names, [*names[1:], Name("Other")], strict=True)}
    assert datamodel._after(chain) == tuple(reversed(names))
    assert datamodel._after({**chain, names[-1]: [names[0]]}) == tuple(reversed(names))
