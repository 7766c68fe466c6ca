"""Converts Swagger 2.0 to OpenAPI 3.0.

`definitions` and other shared parts stay where they are, so that references and messages match the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stubwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stubwright.ir import Json

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_VALUES: Final = frozenset({"default", "enum", "example", "examples", "x-example"})
"""Keys that contain values instead of schemas."""

_SCHEMA: Final = (
    *("type", "format", "items", "default", "enum", "pattern", "multipleOf", "uniqueItems", "x-nullable"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "maxItems", "minItems"),
)
"""Parameter keys that move to its schema in 3.0."""

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
_STYLES: Final = {
    "csv": "form",
    "multi": "form",
    "ssv": "spaceDelimited",
    "pipes": "pipeDelimited",
    "tsv": "tabDelimited",
}


def convert(root: Mapping[str, Json]) -> dict[str, Json]:
    """Convert a Swagger 2.0 document to OpenAPI 3.0."""
    document = {key: value for key, value in root.items() if key not in _MOVED}
    document["openapi"] = "3.0.4"
    document["servers"] = _make_servers(root, root.get("schemes"))
    if isinstance(root.get("securityDefinitions"), dict):
        schemes = {name: _convert_scheme(scheme) for name, scheme in root["securityDefinitions"].items()}
        document["components"] = {"securitySchemes": schemes}
    if isinstance(root.get("parameters"), dict):
        document["parameters"] = {name: _convert_parameter(parameter) for name, parameter in root["parameters"].items()}
    if isinstance(root.get("responses"), dict):
        document["responses"] = {
            name: _convert_response(response, _get_media_types(root, "produces"))
            for name, response in root["responses"].items()
        }
    for key in ("paths", "x-paths"):
        if isinstance(root.get(key), dict):
            document[key] = {path: _convert_item(item, root) for path, item in root[key].items()}
    return {key: _convert_keywords(value, names=key in _NAMED) for key, value in document.items()}


_MOVED: Final = frozenset(
    {"swagger", "host", "basePath", "schemes", "consumes", "produces", "securityDefinitions", "parameters", "responses"}
)


def convert_part(value: Json, root: Mapping[str, Json]) -> Json:
    """Convert a file referenced by a Swagger 2.0 document.

    Args:
        value: The file's content: paths, a path item, an operation, or schemas.
        root: The document before its conversion.
    """
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(key, str) and key.startswith(("/", "x-")) for key in value):
        return _convert_keywords({path: _convert_item(item, root) for path, item in value.items()})
    if any(isinstance(value.get(method), dict) for method in _METHODS):
        return _convert_keywords(_convert_item(value, root))
    return _convert_keywords(_convert_operation(value, {}, root) if isinstance(value.get("responses"), dict) else value)


def _make_servers(root: Mapping[str, Json], schemes: Json) -> list[Json]:
    """Return the servers: one for each HTTP scheme, `https` first."""
    host, base = root.get("host"), root.get("basePath")
    path = base if isinstance(base, str) and base.startswith("/") else ""
    if not isinstance(host, str) or not host:
        return [{"url": path}] if path else []
    known = [scheme for scheme in ("https", "http") if isinstance(schemes, list) and scheme in schemes] or ["https"]
    return [{"url": f"{scheme}://{host}{path}"} for scheme in known]


def _convert_scheme(scheme: Json) -> Json:
    if not isinstance(scheme, dict):
        return scheme
    if scheme.get("type") == "basic":
        return {**scheme, "type": "http", "scheme": "basic"}
    if scheme.get("type") != "oauth2":
        return scheme
    flow_keys = ("authorizationUrl", "tokenUrl", "scopes")
    flow = {key: scheme[key] for key in flow_keys if key in scheme}
    rest = {key: value for key, value in scheme.items() if key not in (*flow_keys, "flow")}
    return {**rest, "flows": {_FLOWS.get(str(scheme.get("flow")), "implicit"): flow}}


def _convert_item(item: Json, root: Mapping[str, Json]) -> Json:
    """Convert a path item. Copy body and form parameters to each of the item's operations."""
    if not isinstance(item, dict):
        return item
    shared = _list_parameters(item.get("parameters"), root)
    converted = dict(item)
    if shared:
        converted["parameters"] = [
            _convert_parameter(parameter) for parameter, target in shared if not _is_body(target)
        ]
    for method in _METHODS:
        if isinstance(item.get(method), dict) and "$ref" not in item[method]:
            converted[method] = _convert_operation(
                item[method], {"parameters": [parameter for parameter, _ in shared]}, root
            )
    return converted


def _convert_operation(
    operation: Mapping[str, Json], item: Mapping[str, Json], root: Mapping[str, Json]
) -> dict[str, Json]:
    """Convert an operation, with the parameters of its path item.

    Bodies and forms become the operation's request body.
    """
    converted = {key: value for key, value in operation.items() if key not in ("consumes", "produces", "schemes")}
    own = _list_parameters(operation.get("parameters"), root)
    if own:
        converted["parameters"] = [_convert_parameter(parameter) for parameter, target in own if not _is_body(target)]
    named = {(target.get("in"), target.get("name")) for _, target in own}
    above = _list_parameters(item.get("parameters"), root)
    bodies = [parameter for _, parameter in own] + [
        parameter for _, parameter in above if (parameter.get("in"), parameter.get("name")) not in named
    ]
    consumes = _get_media_types(operation, "consumes") or _get_media_types(root, "consumes")
    body = _make_request_body([parameter for parameter in bodies if _is_body(parameter)], consumes)
    if body is not None:
        converted["requestBody"] = body
    if isinstance(operation.get("responses"), dict):
        produces = _get_media_types(operation, "produces") or _get_media_types(root, "produces")
        converted["responses"] = {
            status: _convert_response(_resolve(response, root), produces)
            for status, response in operation["responses"].items()
        }
    if (
        "schemes" in operation
        and _make_servers(root, operation["schemes"])[:1] != _make_servers(root, root.get("schemes"))[:1]
    ):
        converted["servers"] = _make_servers(root, operation["schemes"])
    return converted


def _list_parameters(parameters: Json, root: Mapping[str, Json]) -> list[tuple[Json, dict[str, Any]]]:
    """Return the parameters in a list, each paired with the target of its reference, or with itself."""
    pairs = [(parameter, _resolve(parameter, root)) for parameter in parameters] if isinstance(parameters, list) else []
    return [(parameter, target) for parameter, target in pairs if isinstance(target, dict)]


def _resolve(value: Json, root: Mapping[str, Json]) -> Json:
    reference = value.get("$ref") if isinstance(value, dict) else None
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return value
    target: Json = root
    for step in split_pointer(reference[1:]):
        if not isinstance(target, dict) or step not in target:
            return value
        target = target[step]
    return target if isinstance(target, dict) and "$ref" not in target else value


def _is_body(parameter: Mapping[str, Json]) -> bool:
    return parameter.get("in") in ("body", "formData")


def _convert_parameter(parameter: Json) -> Json:
    """Convert a parameter outside the body. In 3.0, a parameter's type and format are in its schema."""
    if not isinstance(parameter, dict) or "$ref" in parameter or _is_body(parameter):
        return parameter
    converted = {
        key: value for key, value in parameter.items() if key not in (*_SCHEMA, "collectionFormat", "x-example")
    }
    converted["schema"] = {key: parameter[key] for key in _SCHEMA if key in parameter}
    if "x-example" in parameter:
        converted["example"] = parameter["x-example"]
    if parameter.get("type") == "array":
        converted |= _make_style(parameter)
    return converted


def _make_style(parameter: Mapping[str, Json]) -> dict[str, Json]:
    """Return a list's style. `tabDelimited` is our own style, because OpenAPI 3 does not define a style with tabs."""
    format_ = parameter.get("collectionFormat", "csv")
    # `multi` is only for queries and forms; a repeated header is equivalent to one list (RFC 9110, 5.3).
    if format_ in ("csv", "multi") and parameter.get("in") in ("path", "header"):
        return {"style": "simple"}
    return {
        "style": _STYLES.get(format_, format_) if isinstance(format_, str) else "csv",
        "explode": format_ == "multi",
    }


def _make_request_body(parameters: Sequence[Mapping[str, Json]], consumes: Sequence[str]) -> dict[str, Json] | None:
    """Return the request body for a `body` parameter or for `formData` parameters, or None without such parameters."""
    bodies = [parameter for parameter in parameters if parameter.get("in") == "body"]
    if bodies:
        body, *_ = bodies
        media = {"schema": body.get("schema", {})}
        description = {"description": body["description"]} if "description" in body else {}
        required = {"required": True} if body.get("required") is True else {}
        return {**description, **required, "content": dict.fromkeys(consumes or [_JSON], media)}
    if not parameters:
        return None
    has_file = any(parameter.get("type") == "file" for parameter in parameters)
    forms = [
        media_type for media_type in consumes if media_type.partition(";")[0].strip().lower() in (_FORM, _MULTIPART)
    ]
    forms = [_MULTIPART] if has_file else forms or [_FORM]
    required_fields = [parameter.get("name") for parameter in parameters if parameter.get("required") is True]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {str(parameter.get("name")): _make_field(parameter) for parameter in parameters},
    }
    if required_fields:
        schema["required"] = required_fields
    lists = {
        str(parameter.get("name")): _make_style(parameter)
        for parameter in parameters
        if parameter.get("type") == "array"
    }
    joined = {name: style for name, style in lists.items() if style.get("explode") is False}
    encodings = {media: joined if media == _MULTIPART else lists for media in forms}
    content = {
        media: {"schema": schema, **({"encoding": encoding} if encoding else {})}
        for media, encoding in encodings.items()
    }
    return {**({"required": True} if required_fields else {}), "content": content}


def _make_field(parameter: Mapping[str, Json]) -> dict[str, Json]:
    schema = {key: parameter[key] for key in ("description", *_SCHEMA) if key in parameter}
    return {**schema, "example": parameter["x-example"]} if "x-example" in parameter else schema


def _convert_response(response: Json, produces: Sequence[str]) -> Json:
    """Convert a response. The response's schema applies to each media type that the operation produces."""
    if not isinstance(response, dict):
        return response
    if isinstance(response.get("headers"), dict):
        response = {**response, "headers": {name: _convert_header(at) for name, at in response["headers"].items()}}
    if "schema" not in response:
        return response
    converted = {key: value for key, value in response.items() if key not in ("schema", "examples")}
    schema = response["schema"]
    is_file = isinstance(schema, dict) and schema.get("type") == "file"
    media = produces or [_BYTES if is_file else _JSON]
    return {**converted, "content": {media_type: {"schema": schema} for media_type in media}}


def _convert_header(header: Json) -> Json:
    is_list = isinstance(header, dict) and header.get("type") == "array"
    return {**header, **_make_style({**header, "in": "header"})} if is_list else header


def _get_media_types(holder: Mapping[str, Json], key: str) -> list[str]:
    listed = holder.get(key)
    return [media_type for media_type in listed if isinstance(media_type, str)] if isinstance(listed, list) else []


def _convert_keywords(value: Any, *, names: bool = False) -> Any:
    """Convert `nullable`, `discriminator` and file schemas.

    `names` is true if the keys of `value` are property names rather than keywords.
    """
    if isinstance(value, list):
        return [_convert_keywords(item) for item in value]
    if not isinstance(value, dict):
        return value
    if names:
        return {name: _convert_keywords(entry) for name, entry in value.items()}
    converted = {
        key: entry if key in _VALUES else _convert_keywords(entry, names=key in _NAMED) for key, entry in value.items()
    }
    if isinstance(converted.get("x-nullable"), bool):
        converted["nullable"] = converted.pop("x-nullable")
    if isinstance(converted.get("discriminator"), str):
        converted["discriminator"] = {"propertyName": converted["discriminator"]}
    if converted.get("type") == "file":
        converted |= {"type": "string", "format": "binary"}
    return converted


_NAMED: Final = frozenset({"properties", "definitions", "parameters", "responses", "paths", "headers", "encoding"})
"""Keys whose values are mappings from names."""
