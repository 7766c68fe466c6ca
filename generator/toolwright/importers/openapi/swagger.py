"""Swagger 2.0 as OpenAPI 3.0: where hosts, bodies, forms, media types, styles and credentials stand.

Takes the value of a document, and of the files that it refers to; gives the value that 3.0 would have. What is the same
in both stays where it is, also `definitions`, so that references and what is told of them are those of the document
(OpenAPI Specification 2.0; 3.0.0, "Migrating from 2.0" of the 3.0 announcement).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from toolwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolwright.ir import Json

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_VALUES: Final = frozenset({"default", "enum", "example", "examples", "x-example"})
"""Keys below which values stand and no schemas."""

_SCHEMA: Final = (
    *("type", "format", "items", "default", "enum", "pattern", "multipleOf", "uniqueItems", "x-nullable"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "maxItems", "minItems"),
)
"""Keys of a parameter that are keys of its schema in 3.0."""

_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_BYTES: Final = "application/octet-stream"
_FLOWS: Final = {
    "implicit": "implicit",
    "password": "password",
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
}
_STYLES: Final = {"csv": "form", "multi": "form", "ssv": "spaceDelimited", "pipes": "pipeDelimited"}


def converted(root: Mapping[str, Json]) -> dict[str, Json]:
    """A document of Swagger 2.0 as one of OpenAPI 3.0."""
    made = {key: value for key, value in root.items() if key not in _MOVED}
    made["openapi"] = "3.0.4"
    made["servers"] = _servers(root, root.get("schemes"))
    if isinstance(root.get("securityDefinitions"), dict):
        schemes = {name: _scheme(one) for name, one in root["securityDefinitions"].items()}
        made["components"] = {"securitySchemes": schemes}
    if isinstance(root.get("parameters"), dict):
        made["parameters"] = {name: _parameter(one) for name, one in root["parameters"].items()}
    if isinstance(root.get("responses"), dict):
        made["responses"] = {name: _response(one, _media(root, "produces")) for name, one in root["responses"].items()}
    for key in ("paths", "x-paths"):
        if isinstance(root.get(key), dict):
            made[key] = {path: _item(item, root) for path, item in root[key].items()}
    return {key: _plain(value, names=key in _NAMED) for key, value in made.items()}


_MOVED: Final = frozenset(
    {"swagger", "host", "basePath", "schemes", "consumes", "produces", "securityDefinitions", "parameters", "responses"}
)


def part(value: Json, root: Mapping[str, Json]) -> Json:
    """A file that a document of Swagger 2.0 refers to.

    Args:
        value: Its value: paths, a path item, an operation, or schemas.
        root: The document, before it was converted.
    """
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(key, str) and key.startswith(("/", "x-")) for key in value):
        return _plain({path: _item(item, root) for path, item in value.items()})
    if any(isinstance(value.get(method), dict) for method in _METHODS):
        return _plain(_item(value, root))
    return _plain(_operation(value, {}, root) if isinstance(value.get("responses"), dict) else value)


def _servers(root: Mapping[str, Json], schemes: Json) -> list[Json]:
    """The servers: one for each scheme that is HTTP, the safe one first."""
    host, base = root.get("host"), root.get("basePath")
    path = base if isinstance(base, str) and base.startswith("/") else ""
    if not isinstance(host, str) or not host:
        return [{"url": path}] if path else []
    known = [one for one in ("https", "http") if isinstance(schemes, list) and one in schemes] or ["https"]
    return [{"url": f"{scheme}://{host}{path}"} for scheme in known]


def _scheme(scheme: Json) -> Json:
    """A security scheme."""
    if not isinstance(scheme, dict):
        return scheme
    if scheme.get("type") == "basic":
        return {**scheme, "type": "http", "scheme": "basic"}
    if scheme.get("type") != "oauth2":
        return scheme
    told = ("authorizationUrl", "tokenUrl", "scopes")
    flow = {key: scheme[key] for key in told if key in scheme}
    kept = {key: value for key, value in scheme.items() if key not in (*told, "flow")}
    return {**kept, "flows": {_FLOWS.get(str(scheme.get("flow")), "implicit"): flow}}


def _item(item: Json, root: Mapping[str, Json]) -> Json:
    """A path item; the bodies and forms among its parameters go to each of its operations."""
    if not isinstance(item, dict):
        return item
    shared = _listed(item.get("parameters"), root)
    made = dict(item)
    if shared:
        made["parameters"] = [_parameter(one) for one, meant in shared if not _is_body(meant)]
    for method in _METHODS:
        if isinstance(item.get(method), dict) and "$ref" not in item[method]:
            made[method] = _operation(item[method], {"parameters": [one for one, _ in shared]}, root)
    return made


def _operation(operation: Mapping[str, Json], item: Mapping[str, Json], root: Mapping[str, Json]) -> dict[str, Json]:
    """An operation, with the parameters of its path item, of which the bodies and forms are its own."""
    made = {key: value for key, value in operation.items() if key not in ("consumes", "produces", "schemes")}
    own = _listed(operation.get("parameters"), root)
    if own:
        made["parameters"] = [_parameter(one) for one, meant in own if not _is_body(meant)]
    named = {(meant.get("in"), meant.get("name")) for _, meant in own}
    above = _listed(item.get("parameters"), root)
    bodies = [one for _, one in own] + [one for _, one in above if (one.get("in"), one.get("name")) not in named]
    consumes = _media(operation, "consumes") or _media(root, "consumes")
    body = _request_body([one for one in bodies if _is_body(one)], consumes)
    if body is not None:
        made["requestBody"] = body
    if isinstance(operation.get("responses"), dict):
        produces = _media(operation, "produces") or _media(root, "produces")
        made["responses"] = {
            status: _response(_meant(one, root), produces) for status, one in operation["responses"].items()
        }
    if "schemes" in operation and _servers(root, operation["schemes"])[:1] != _servers(root, root.get("schemes"))[:1]:
        made["servers"] = _servers(root, operation["schemes"])
    return made


def _listed(parameters: Json, root: Mapping[str, Json]) -> list[tuple[Json, dict[str, Any]]]:
    """Parameters as they stand in a list, each with what it is, where it is a reference into the document."""
    found = [(one, _meant(one, root)) for one in parameters] if isinstance(parameters, list) else []
    return [(one, meant) for one, meant in found if isinstance(meant, dict)]


def _meant(value: Json, root: Mapping[str, Json]) -> Json:
    """What a reference into the document leads to; anything else, and one that leads nowhere, is itself."""
    reference = value.get("$ref") if isinstance(value, dict) else None
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return value
    here: Json = root
    for step in split_pointer(reference[1:]):
        if not isinstance(here, dict) or step not in here:
            return value
        here = here[step]
    return here if isinstance(here, dict) and "$ref" not in here else value


def _is_body(parameter: Mapping[str, Json]) -> bool:
    return parameter.get("in") in ("body", "formData")


def _parameter(parameter: Json) -> Json:
    """A parameter that is no part of a body; its type and its format are its schema in 3.0."""
    if not isinstance(parameter, dict) or "$ref" in parameter or _is_body(parameter):
        return parameter
    made = {key: value for key, value in parameter.items() if key not in (*_SCHEMA, "collectionFormat", "x-example")}
    made["schema"] = {key: parameter[key] for key in _SCHEMA if key in parameter}
    if "x-example" in parameter:
        made["example"] = parameter["x-example"]
    if parameter.get("type") == "array":
        made |= _style(parameter)
    return made


def _style(parameter: Mapping[str, Json]) -> dict[str, Json]:
    """How a list is written; one that is separated by tabs is a style that 3.0 does not have."""
    way = parameter.get("collectionFormat", "csv")
    if way == "csv" and parameter.get("in") in ("path", "header"):
        return {"style": "simple"}
    return {"style": _STYLES.get(way, way) if isinstance(way, str) else "csv", "explode": way == "multi"}


def _request_body(parameters: Sequence[Mapping[str, Json]], consumes: Sequence[str]) -> dict[str, Json] | None:
    """The body that a parameter of `body`, or those of `formData`, are."""
    bodies = [one for one in parameters if one.get("in") == "body"]
    if bodies:
        body, *_ = bodies
        media = {"schema": body.get("schema", {})}
        told = {"description": body["description"]} if "description" in body else {}
        required = {"required": True} if body.get("required") is True else {}
        return {**told, **required, "content": dict.fromkeys(consumes or [_JSON], media)}
    if not parameters:
        return None
    has_file = any(one.get("type") == "file" for one in parameters)
    forms = [one for one in consumes if one.partition(";")[0].strip().lower() in (_FORM, _MULTIPART)]
    forms = [_MULTIPART] if has_file else forms or [_FORM]
    required_fields = [one.get("name") for one in parameters if one.get("required") is True]
    schema: dict[str, Any] = {"type": "object", "properties": {str(one.get("name")): _field(one) for one in parameters}}
    if required_fields:
        schema["required"] = required_fields
    lists = {str(one.get("name")): _style(one) for one in parameters if one.get("type") == "array"}
    content = {
        media: {"schema": schema, **({"encoding": lists} if lists and media != _MULTIPART else {})} for media in forms
    }
    return {**({"required": True} if required_fields else {}), "content": content}


def _field(parameter: Mapping[str, Json]) -> dict[str, Json]:
    """A field of a form as a property."""
    made = {key: parameter[key] for key in ("description", *_SCHEMA) if key in parameter}
    return {**made, "example": parameter["x-example"]} if "x-example" in parameter else made


def _response(response: Json, produces: Sequence[str]) -> Json:
    """A response, whose schema counts for all that the operation produces."""
    if not isinstance(response, dict) or "schema" not in response:
        return response
    made = {key: value for key, value in response.items() if key not in ("schema", "examples")}
    schema = response["schema"]
    is_file = isinstance(schema, dict) and schema.get("type") == "file"
    media = produces or [_BYTES if is_file else _JSON]
    return {**made, "content": {one: {"schema": schema} for one in media}}


def _media(holder: Mapping[str, Json], key: str) -> list[str]:
    listed = holder.get(key)
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def _plain(value: Any, *, names: bool = False) -> Any:
    """A value in which schemas say `nullable`, `discriminator` and files as 3.0 does; `names` are keys of anything."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    if names:
        return {name: _plain(one) for name, one in value.items()}
    made = {key: one if key in _VALUES else _plain(one, names=key in _NAMED) for key, one in value.items()}
    if isinstance(made.get("x-nullable"), bool):
        made["nullable"] = made.pop("x-nullable")
    if isinstance(made.get("discriminator"), str):
        made["discriminator"] = {"propertyName": made["discriminator"]}
    if made.get("type") == "file":
        made |= {"type": "string", "format": "binary"}
    return made


_NAMED: Final = frozenset({"properties", "definitions", "parameters", "responses", "paths", "headers", "encoding"})
"""Keys below which names of the document's own stand."""
