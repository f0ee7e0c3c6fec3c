"""Words of documents that an import once dropped, or sent elsewhere, without a row about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from capdex.errors import InvalidInput, UsageError
from capdex.json import Json
from capdex.json_schema.bounds import evaluations_of
from capdex.manifest.manifest import Manifest
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.openapi.tool import import_openapi
from capdex_router.bindings.request import RequestTemplate
from capdex_router.invoke.validation import Validation

ManifestOf = Callable[[Imported], Manifest]
TEXT = {"type": "string"}
B = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}


def imported(
    operation: Json | None = None,
    *,
    path: str = "/x",
    method: str = "get",
    item: Json | None = None,
    wanted: tuple[str, ...] = (),
    **document: Any,
) -> Imported:
    whole = {
        "openapi": "3.1.0",
        "info": {"title": "Rain"},
        "servers": [{"url": "https://api.rain.dev"}],
        "paths": {path: {**(item or {}), method: {"operationId": "op", **(operation or {})}}},
        **document,
    }
    return write_package(import_openapi(json.dumps(whole).encode(), "rain", wanted))


def posting(schema: Json, **media: Any) -> Json:
    kind = "application/x-www-form-urlencoded" if media else "application/json"
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema, **media}}}}


def rows(package: Imported) -> dict[str, tuple[str, str]]:
    return {x.subject: (x.fate, x.before) for x in package.notes if x.subject != "replies"}


def test_characters_that_nobody_sees_are_counted_where_they_are_left_out(
    manifest_of: ManifestOf,
) -> None:
    parameter = {"name": "q", "in": "query", "schema": {**TEXT, "description": "A\u202e b"}}
    package = imported({"description": "It\u200b rains.", "parameters": [parameter]})
    (tool,) = manifest_of(package).tools
    assert tool.description == "It rains."
    assert tool.parameters["properties"]["q"]["description"] == "A b"
    said = rows(package)
    assert said["description"] == ("left out", "1 character")
    assert said["schema word description"] == ("left out", "1 character")


def test_a_required_member_without_a_schema_is_an_argument(manifest_of: ManifestOf) -> None:
    schema = {"type": "object", "properties": {"a": TEXT}, "required": ["a", "b"]}
    (tool,) = manifest_of(imported(posting(schema), method="post")).tools
    assert tool.parameters["properties"] == {"a": TEXT, "b": {}}
    assert tool.parameters["required"] == ["a", "b"]


def test_what_stands_beside_a_reference_to_a_body_is_kept_in_3_1_alone(
    manifest_of: ManifestOf,
) -> None:
    schema = {"$ref": "#/components/schemas/B", "required": ["b"]}
    components = {"schemas": {"B": B}}
    new = imported(posting(schema), method="post", components=components)
    body = manifest_of(new).tools[0].parameters["properties"]["body"]
    assert body == {"$ref": "#/$defs/B", "required": ["b"]}
    old = imported(posting(schema), method="post", components=components, openapi="3.0.3")
    assert "required" not in manifest_of(old).tools[0].parameters


def test_a_member_may_be_read_only_beside_its_reference(manifest_of: ManifestOf) -> None:
    member = {"$ref": "#/components/schemas/I", "readOnly": True}
    schema = {"type": "object", "properties": {"id": member, "a": TEXT}, "required": ["id"]}
    components = {"schemas": {"I": TEXT}}
    new = imported(posting(schema), method="post", components=components)
    assert list(manifest_of(new).tools[0].parameters["properties"]) == ["a"]
    old = imported(posting(schema), method="post", components=components, openapi="3.0.3")
    assert list(manifest_of(old).tools[0].parameters["properties"]) == ["id", "a"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("pets", "does not begin with a slash"),
        (".evil.dev/x", "does not begin with a slash"),
        ("/a/../b", "one dot or two"),
    ],
)
def test_a_path_that_would_change_the_host_or_the_path_is_refused(path: str, why: str) -> None:
    with pytest.raises(InvalidInput) as error:
        imported(path=path)
    assert why in error.value.why


def test_a_server_whose_path_is_refused_is_named() -> None:
    with pytest.raises(InvalidInput) as error:
        imported(servers=[{"url": "https://api.rain.dev/v1/../v2"}])
    assert "path (https://api.rain.dev/v1/../v2/x) refused" in error.value.why


def test_a_path_parameter_without_a_place_in_the_path_is_not_sent_elsewhere(
    manifest_of: ManifestOf,
) -> None:
    parameter = {"name": "id", "in": "path", "required": True, "schema": TEXT}
    package = imported({"parameters": [parameter]})
    assert manifest_of(package).tools[0].parameters["properties"] == {}
    assert rows(package)["path id"] == ("left out", "")


@pytest.mark.parametrize("place", ["header", "query"])
def test_a_parameter_that_is_a_secret_of_the_operation_is_no_argument(
    place: str, manifest_of: ManifestOf
) -> None:
    parameter = {"name": "tenant", "in": place, "required": True, "schema": TEXT}
    scheme = {"type": "apiKey", "in": place, "name": "tenant"}
    package = imported(
        {"parameters": [parameter], "security": [{"site": []}]},
        components={"securitySchemes": {"site": scheme}},
    )
    manifest = manifest_of(package)
    assert manifest.tools[0].parameters["properties"] == {}
    auth = manifest.bindings["op"]["auth"]
    sent = {"type": place, "name": "tenant", "secret": "SITE"}
    assert auth == (sent if place == "header" else [sent])
    assert rows(package)[f"{place} tenant"] == ("changed", "a parameter")


def test_a_key_that_only_a_model_can_give_is_said() -> None:
    schema = {"type": "object", "properties": {"api_key": TEXT}}
    assert rows(imported(posting(schema), method="post"))["body api_key"][0] == "changed"
    token = {"name": "token", "in": "path", "required": True, "schema": TEXT}
    package = imported({"parameters": [token]}, path="/bot{token}/send")
    assert rows(package)["path token"] == ("changed", "a secret by its name")


def test_a_header_of_an_operation_is_before_that_of_its_path_in_any_case(
    manifest_of: ManifestOf,
) -> None:
    above = {"name": "X-Trace", "in": "header", "schema": {"type": "integer"}}
    own = {"name": "x-trace", "in": "header", "schema": TEXT}
    package = imported({"parameters": [own]}, item={"parameters": [above]})
    assert manifest_of(package).tools[0].parameters["properties"] == {"x-trace": TEXT}


@pytest.mark.parametrize("tags", [{"type": "array", "items": TEXT}, TEXT])
def test_a_list_or_a_text_in_a_form_that_should_be_json_is_said(tags: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"tags": tags}}
    encoding = {"tags": {"contentType": "application/json"}}
    package = imported(posting(schema, encoding=encoding), method="post")
    assert rows(package)["body tags"] == ("changed", "application/json")


def test_lists_under_any_name_of_an_object_in_a_query_are_said() -> None:
    lists = {"type": "object", "additionalProperties": {"type": "array", "items": TEXT}}
    parameter = {"name": "f", "in": "query", "style": "deepObject", "schema": lists}
    assert rows(imported({"parameters": [parameter]}))["query f"] == ("changed", "deepObject")


@pytest.mark.parametrize(
    ("own", "is_said"),
    [({}, True), ({"additionalProperties": {}}, True), ({"additionalProperties": TEXT}, False)],
)
def test_an_object_of_anything_in_a_query_may_hold_what_is_sent_as_text(
    own: Json, is_said: bool
) -> None:
    schema = {"type": "object", **own}
    parameter = {"name": "f", "in": "query", "style": "deepObject", "schema": schema}
    assert ("query f" in rows(imported({"parameters": [parameter]}))) == is_said


def test_a_member_that_the_service_sets_is_said_to_be_left_out() -> None:
    package = imported(posting(SERVICE_SETS), method="post")
    assert rows(package)["body id"] == ("left out", "readOnly")


@pytest.mark.parametrize(
    ("own", "above", "url"),
    [
        (["http"], ["https"], "https://api.example.com/x"),  # to edit: no package calls http
        (["https"], ["http"], "https://rain.dev/x"),
    ],
)
def test_the_schemes_of_an_operation_are_before_those_of_a_swagger_document(
    own: list[str], above: list[str], url: str, manifest_of: ManifestOf
) -> None:
    package = imported(
        {"schemes": own}, openapi=None, swagger="2.0", host="rain.dev", schemes=above
    )
    assert manifest_of(package).bindings["op"]["url"] == url


def test_an_id_of_two_operations_names_none_of_them() -> None:
    paths = {"/a": {"get": {"operationId": "list"}}, "/b": {"get": {"operationId": "list"}}}
    with pytest.raises(UsageError, match="2 operations 'list'") as error:
        imported(paths=paths, wanted=("list",))
    assert error.value.why == "they are GET /a, GET /b"
    assert error.value.fix == "--operation 'GET /a'"


def test_what_stands_beside_a_reference_to_a_path_adds_to_it(manifest_of: ManifestOf) -> None:
    must = {"name": "must", "in": "query", "required": True, "schema": TEXT}
    package = imported(
        paths={
            "/x": {
                "$ref": "#/components/pathItems/P",
                "servers": [{"url": "https://up.rain.dev"}],
                "parameters": [must],
            }
        },
        components={"pathItems": {"P": {"get": {"operationId": "op"}}}},
    )
    manifest = manifest_of(package)
    assert manifest.bindings["op"]["url"] == "https://up.rain.dev/x"
    assert manifest.tools[0].parameters["required"] == ["must"]


@pytest.mark.parametrize("word", ["parameters", "security"])
@pytest.mark.parametrize("value", [{"key": []}, ["key"], "key"])
def test_a_list_that_is_none_is_no_reason_to_call_without_it(word: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match="none of these operations"):
        imported({word: value})


@pytest.mark.parametrize("count", [20, 95, 300])
def test_what_is_too_much_for_a_router_is_cut_to_what_it_holds(
    count: int, manifest_of: ManifestOf
) -> None:
    names = [f"s{i}" for i in range(count)]
    own = {x: {"type": "string", "nullable": True} for x in "abcdefghijklmnopqrstuvwxyz"}
    schemas = {x: {"type": "object", "properties": own} for x in names}
    refs = {x: {"$ref": f"#/components/schemas/{x}"} for x in names}
    schema = {"type": "object", "properties": refs}
    package = imported(
        posting(schema), method="post", openapi="3.0.3", components={"schemas": schemas}
    )
    parameters = manifest_of(package).tools[0].parameters
    assert evaluations_of(parameters, len(json.dumps(parameters))) > 0
    cut = {x for x, y in parameters["$defs"].items() if y == {}}
    assert {f"schema {x}" for x in cut} == rows(package).keys() - {"body"}


def test_a_tool_that_no_router_can_check_is_refused() -> None:
    one, other = {"$ref": "#/components/schemas/a"}, {"$ref": "#/components/schemas/b"}
    schemas = {"a": {"anyOf": [other, other, TEXT]}, "b": {"anyOf": [one, one]}}
    parameter = {"name": "q", "in": "query", "schema": one}
    item = {"post": {"operationId": "other"}}
    with pytest.raises(InvalidInput) as error:
        imported({"parameters": [parameter]}, components={"schemas": schemas})
    assert "too complex to be used" in error.value.why
    both = imported(
        *({"parameters": [parameter]},),
        item=item, wanted=("op", "other"), components={"schemas": schemas},
    )  # fmt: skip
    assert rows(both)["tool"] == ("refused", "")


def test_choices_among_choices_are_each_looked_at_once() -> None:
    refs = [[{"$ref": f"#/components/schemas/S{i}"}] * 6 for i in range(1, 13)]
    schemas: Json = {f"S{i}": {"anyOf": x} for i, x in enumerate(refs)} | {"S12": TEXT}
    parameter = {"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/S0"}}
    with pytest.raises(InvalidInput, match="can carry none"):  # and not after minutes
        imported({"parameters": [parameter]}, components={"schemas": schemas})


SERVICE_SETS: Json = {"type": "object", "properties": {"id": {**TEXT, "readOnly": True}, "a": TEXT}}
NEEDS_ID: Json = {"type": "object", "required": ["id", "a"]}
PARTS: dict[str, Json] = {  # of an object whose `id` the service sets
    "beside": {**SERVICE_SETS, "required": ["id", "a"]},
    "parts": {"allOf": [SERVICE_SETS, NEEDS_ID]},
    "outer": {**SERVICE_SETS, "allOf": [NEEDS_ID]},
    "inner": {**NEEDS_ID, "allOf": [{"allOf": [SERVICE_SETS]}]},
    "choice": {"allOf": [SERVICE_SETS], "oneOf": [NEEDS_ID]},
    "references": {
        "allOf": [{"$ref": "#/components/schemas/S"}, {"$ref": "#/components/schemas/N"}]
    },
    "twice": {"allOf": [SERVICE_SETS, {"allOf": [{"$ref": "#/components/schemas/N"}]}]},
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("deep", [False, True])
def test_what_the_service_sets_is_not_required_in_any_part(
    name: str, deep: bool, manifest_of: ManifestOf
) -> None:
    schema = PARTS[name]
    if deep:
        schema = {"type": "object", "properties": {"of": {"type": "array", "items": schema}}}
    components = {"schemas": {"S": SERVICE_SETS, "N": NEEDS_ID}}
    package = imported(posting(schema), method="post", components=components)
    parameters = manifest_of(package).tools[0].parameters
    arguments: Json = {"of": [{"a": "x"}]} if deep else {"a": "x"}
    wrapped = {"body": arguments} if "body" in parameters["properties"] else arguments
    assert Validation().check(parameters, wrapped) is None
    del (arguments["of"][0] if deep else arguments)["a"]
    assert Validation().check(parameters, wrapped) is not None


def test_a_schema_that_needs_what_another_one_hides_is_needed_elsewhere(
    manifest_of: ManifestOf,
) -> None:
    properties = {"plain": {"$ref": "#/components/schemas/N"}, "cut": PARTS["references"]}
    components = {"schemas": {"S": SERVICE_SETS, "N": NEEDS_ID}}
    schema = {"type": "object", "properties": properties}
    package = imported(posting(schema), method="post", components=components)
    parameters = manifest_of(package).tools[0].parameters
    assert Validation().check(parameters, {"cut": {"a": "x"}}) is None
    assert "required" in str(Validation().check(parameters, {"plain": {"a": "x"}}))


@pytest.mark.parametrize(
    ("discriminator", "told"),
    [
        ({"propertyName": "kind"}, "kind is the name of the schema that is meant: Dog, Cat."),
        (
            {"propertyName": "kind", "mapping": {"d": "#/components/schemas/Dog", "c": "Cat"}},
            "kind tells which schema is meant: d for Dog, c for Cat.",
        ),
    ],
)
def test_a_discriminator_is_told_where_the_choice_is(
    discriminator: Json, told: str, manifest_of: ManifestOf
) -> None:
    one = {"type": "object", "properties": {"kind": TEXT}}
    choice = [{"$ref": "#/components/schemas/Dog"}, {"$ref": "#/components/schemas/Cat"}]
    schema = {"oneOf": choice, "discriminator": discriminator, "description": "A pet."}
    components = {"schemas": {"Dog": one, "Cat": one}}
    package = imported(posting(schema), method="post", components=components)
    body = manifest_of(package).tools[0].parameters["properties"]["body"]
    assert body["description"] == f"A pet. {told}"


def test_members_that_only_a_discriminator_leads_to_are_named() -> None:
    pet = {**B, "discriminator": {"propertyName": "a"}}
    assert rows(imported(posting(pet), method="post"))["schema word discriminator"] == (
        "left out",
        "a",
    )


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/vnd.rain+json"])
def test_a_parameter_of_json_with_a_charset_is_json(kind: str, manifest_of: ManifestOf) -> None:
    parameter = {"name": "q", "in": "query", "content": {kind: {"schema": TEXT}}}
    package = imported({"parameters": [parameter]})
    parameters = manifest_of(package).bindings["op"]["parameters"]
    assert parameters["q"]["content"] == "application/json"
    assert rows(package) == {"query q": ("changed", kind)}  # a text is sent in quotation marks


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (
            {"url": "https://rain.dev/{base}", "variables": {"base": {"default": ""}}},
            "https://rain.dev/x",
        ),
        (
            {"url": "https://rain.dev/{basePath}", "variables": {"basePath": {"default": "/prod"}}},
            "https://rain.dev/prod/x",  # as AWS writes its stages
        ),
        ({"url": "HTTPS://API.rain.dev/V1"}, "https://api.rain.dev/V1/x"),
        (
            {"url": "https://{region}rain.dev", "variables": {"region": {"default": ""}}},
            "https://rain.dev/x",
        ),
    ],
)
def test_a_server_is_written_as_its_document_says(
    server: Json, url: str, manifest_of: ManifestOf
) -> None:
    package = imported(servers=[{"url": "http://rain.dev"}, server])
    assert manifest_of(package).bindings["op"]["url"] == url


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("{{site}}", "https://api.example.com/example/x"),
        ("https://{{site}}.rain.dev/v1", "https://example.rain.dev/v1/x"),
    ],
)
def test_a_variable_as_postman_writes_it_is_a_line_to_edit(
    server: str, url: str, manifest_of: ManifestOf
) -> None:
    package = imported(servers=[{"url": server}])
    assert manifest_of(package).bindings["op"]["url"] == url
    assert rows(package)["server"] == ("changed", server)
    assert "site is a variable of the server: no default" in package.to_edit


def test_a_header_that_openapi_3_alone_ignores_is_an_argument_in_swagger(
    manifest_of: ManifestOf,
) -> None:
    names = ("Accept", "Content-Type")
    listed = [{"name": x, "in": "header", "type": "string", "required": True} for x in names]
    value = {
        "swagger": "2.0",
        "host": "api.rain.dev",
        "paths": {"/x": {"get": {"operationId": "op", "parameters": listed}}},
    }
    package = write_package(import_openapi(json.dumps(value).encode(), "rain", ()))
    manifest = manifest_of(package)
    assert manifest.tools[0].parameters["required"] == ["Accept"]
    assert manifest.bindings["op"]["parameters"]["Accept"] == {"in": "header", "name": "Accept"}
    assert rows(package)["header Content-Type"] == ("left out", "")


def test_a_parameter_that_the_path_fixes_is_no_argument(manifest_of: ManifestOf) -> None:
    names = ("type", "q", "a b")
    listed = [{"name": x, "in": "query", "required": True, "schema": TEXT} for x in names]
    package = imported({"parameters": listed}, path="/x?type=rain&a%20b")
    manifest = manifest_of(package)
    assert manifest.tools[0].parameters["required"] == ["q"]
    assert rows(package)["query type"] == ("left out", "")
    outgoing = RequestTemplate.of(manifest.bindings["op"]).fill({"q": "1"})
    assert str(outgoing.url) == "https://api.rain.dev/x?type=rain&a%20b&q=1"


def test_a_parameter_that_stands_twice_is_said(manifest_of: ManifestOf) -> None:
    listed = [{"name": x, "in": "header", "schema": TEXT} for x in ("X-A", "x-a")]
    package = imported({"parameters": listed}, item={"parameters": listed[:1]})
    assert list(manifest_of(package).tools[0].parameters["properties"]) == ["x-a"]
    assert rows(package)["header X-A"] == ("left out", "")


@pytest.mark.parametrize("name", ["", " "])
def test_a_parameter_without_a_name_is_not_sent_under_another(
    name: str, manifest_of: ManifestOf
) -> None:
    package = imported({"parameters": [{"name": name, "in": "query", "schema": TEXT}]})
    assert manifest_of(package).tools[0].parameters["properties"] == {}
    assert {fate for fate, _ in rows(package).values()} == {"left out"}
    needed = {"name": name, "in": "query", "schema": TEXT, "required": True}
    with pytest.raises(InvalidInput) as error:
        imported({"parameters": [needed]})
    assert "it has no name" in error.value.why


def test_a_body_that_takes_no_other_members_takes_none_as_a_tool(manifest_of: ManifestOf) -> None:
    query = {"parameters": [{"name": "q", "in": "query", "schema": TEXT}]}
    closed = {**B, "additionalProperties": False}
    (tool,) = manifest_of(imported({**posting(closed), **query}, method="post")).tools
    assert Validation().check(tool.parameters, {"a": "x", "q": "y"}) is None
    assert Validation().check(tool.parameters, {"a": "x", "z": "y"}) is not None
    (tool,) = manifest_of(imported({**posting(B), **query}, method="post")).tools
    assert "additionalProperties" not in tool.parameters


@pytest.mark.parametrize("fixed", ["security", "path"])
def test_a_member_of_a_body_that_no_call_could_send_is_named(
    fixed: str, manifest_of: ManifestOf
) -> None:
    scheme = {"type": "apiKey", "in": "query", "name": "A"}
    security: Json = {"security": [{"site": []}]} if fixed == "security" else {}
    components = {"securitySchemes": {"site": scheme}}
    path = "/x?A=1" if fixed == "path" else "/x"
    more: Json = {"method": "post", "path": path, "components": components}
    package = imported({**posting(B), **security}, **more)
    assert list(manifest_of(package).tools[0].parameters["properties"]) == ["b"]
    assert rows(package)["body a"] == ("left out", "")
    with pytest.raises(InvalidInput) as error:
        imported({**posting({**B, "required": ["a"]}), **security}, **more)
    assert "body a refused: " in error.value.why


def test_an_optional_body_that_cannot_be_sent_leaves_no_part_of_itself(
    manifest_of: ManifestOf,
) -> None:
    kind = "application/x-www-form-urlencoded"
    schema = {**B, "required": ["b"]}
    media = {"schema": schema, "encoding": {"b": {"style": "matrix"}}}
    schema["properties"] = {"a": TEXT, "b": {"type": "array", "items": TEXT}}
    package = imported({"requestBody": {"content": {kind: media}}}, method="post")
    manifest = manifest_of(package)
    assert manifest.tools[0].parameters["properties"] == {}
    assert manifest.bindings["op"] == {
        "type": "http",
        "method": "POST",
        "url": "https://api.rain.dev/x",
    }
    assert rows(package) == {"body b": ("left out", "matrix")}


def test_a_closed_part_of_a_body_that_is_opened_for_the_others_is_said(
    manifest_of: ManifestOf,
) -> None:
    closed = {**B, "additionalProperties": False}
    schema = {"allOf": [closed, {"type": "object", "properties": {"c": TEXT}}]}
    package = imported(posting(schema), method="post")
    assert list(manifest_of(package).tools[0].parameters["properties"]) == ["a", "b", "c"]
    assert rows(package)["schema word additionalProperties"] == ("changed", "false")
    assert "schema word additionalProperties" not in rows(imported(posting(closed), method="post"))


@pytest.mark.parametrize(
    ("place", "style"),
    [("header", "form"), ("path", "form"), ("query", "simple"), ("query", "deepObject")],
)
def test_a_style_that_one_value_has_no_form_in_is_said(place: str, style: str) -> None:
    parameter = {"in": place, "name": "q", "required": True, "schema": TEXT, "style": style}
    package = imported({"parameters": [parameter]}, path="/x/{q}" if place == "path" else "/x")
    assert rows(package)[f"{place} q"] == ("changed", style)


def test_reserved_characters_of_a_form_that_are_encoded_are_said() -> None:
    encoding = {"a": {"allowReserved": True}}
    package = imported(posting(B, encoding=encoding), method="post")
    assert rows(package)["body a"] == ("changed", "allowReserved")


def test_a_description_beside_a_reference_to_a_parameter_or_a_body_is_kept(
    manifest_of: ManifestOf,
) -> None:
    parts = {
        "parameters": {"L": {"in": "query", "name": "limit", "schema": TEXT, "description": "old"}},
        "requestBodies": {"W": {"content": {"application/json": {}}, "description": "old"}},
    }
    operation: Json = {
        "parameters": [{"$ref": "#/components/parameters/L", "description": "here"}],
        "requestBody": {"$ref": "#/components/requestBodies/W", "description": "here"},
    }
    for version, told in (("3.1.0", "here"), ("3.0.3", "old")):
        package = imported(operation, method="post", components=parts, openapi=version)
        properties = manifest_of(package).tools[0].parameters["properties"]
        assert [x["description"] for x in properties.values()] == [told, told], version


def test_operations_by_the_methods_of_3_2_are_refused_by_name() -> None:
    items: list[Json] = [{"query": {}}, {"additionalOperations": {"COPY": {}}}]
    for item in items:
        method = next(iter(item.get("additionalOperations", item)))
        paths = {"/x": item}
        with pytest.raises(InvalidInput) as caught:
            imported(paths=paths, openapi="3.2.0", wanted=(f"{method} /x",))
        assert f"a package cannot send {method.upper()}" in caught.value.why


def test_a_media_type_may_be_described_in_the_components(manifest_of: ManifestOf) -> None:
    components = {"mediaTypes": {"B": {"schema": B, "example": {"a": "x"}}}}
    content = {"application/json": {"$ref": "#/components/mediaTypes/B"}}
    operation = {
        "parameters": [{"name": "f", "in": "query", "content": content}],
        "requestBody": {"required": True, "content": content},
    }
    package = imported(operation, method="post", components=components, openapi="3.2.0")
    properties = manifest_of(package).tools[0].parameters["properties"]
    assert properties == {
        "f": {**B, "examples": [{"a": "x"}]},
        "a": {**TEXT, "examples": ["x"]},
        "b": TEXT,
    }
    with pytest.raises(InvalidInput) as caught:
        imported(operation, method="post", openapi="3.2.0")
    assert "the document does not describe it" in caught.value.why


def test_an_operation_may_be_named_with_its_method_as_in_the_document() -> None:
    assert "op" in imported(wanted=("get /x",)).text


def test_a_security_scheme_may_be_named_by_its_uri(manifest_of: ManifestOf) -> None:
    schemes = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
    operation: Json = {"security": [{"#/components/securitySchemes/key": []}]}
    package = imported(operation, components=schemes, openapi="3.2.0")
    assert manifest_of(package).bindings["op"]["auth"] == {"type": "bearer", "secret": "KEY"}


@pytest.mark.parametrize("name", ["tag 1", "id"])
def test_a_name_that_a_path_would_send_is_not_changed(name: str) -> None:
    listed = [
        {"in": "query", "name": "id", "schema": TEXT},
        {"in": "path", "name": name, "required": True, "schema": TEXT, "style": "matrix"},
    ]
    with pytest.raises(InvalidInput) as caught:
        imported({"parameters": listed}, path=f"/x/{{{name}}}")
    assert f"op: path {name} ({name}) refused: matrix sends its name" in caught.value.why


def test_a_constant_has_the_form_of_its_value(manifest_of: ManifestOf) -> None:
    listed = [{"in": "query", "name": "v", "schema": {"const": "2"}}]
    package = imported({"parameters": listed})
    assert manifest_of(package).bindings["op"]["type"] == "http_get"
    with pytest.raises(InvalidInput, match="none of these"):
        imported(posting({"const": "2"}, encoding={}), method="post")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_document_in_another_encoding_is_converted_and_said(
    encoding: str, manifest_of: ManifestOf
) -> None:
    text = """{"openapi": "3.0.3", "info": {"title": "Pegel"}, "servers": [{"url": "https://a.dev"}],
        "paths": {"/x": {"get": {"operationId": "op", "summary": "Pegelstände."}}}}"""
    package = write_package(import_openapi(text.encode(encoding), "pegel", ()))
    assert manifest_of(package).tools[0].description == "Pegelstände."
    assert rows(package)["encoding"] == ("changed", encoding.title().replace("Utf", "UTF"))


@pytest.mark.parametrize(
    ("name", "reference"), [({"$anchor": "addr"}, "#addr"), ({"$id": "https://a.dev/s"},) * 2]
)
def test_a_schema_is_found_by_its_anchor_or_its_id(
    name: Json, reference: Any, manifest_of: ManifestOf
) -> None:
    where = reference if isinstance(reference, str) else name["$id"]
    schema = {"type": "object", "properties": {"to": {"$ref": where}}}
    components = {"schemas": {"Other": {}, "Addr": {**B, **name}}}
    package = imported(posting(schema), method="post", components=components)
    (defined,) = manifest_of(package).tools[0].parameters["$defs"].values()
    assert defined["properties"] == B["properties"]
    assert "schema word $ref" not in rows(package)


@pytest.mark.parametrize("reference", ["#None", "other.yaml#/Addr", "https://a.dev/none"])
def test_a_reference_to_a_schema_that_has_no_such_name_is_told(reference: str) -> None:
    schema = {"type": "object", "properties": {"to": {"$ref": reference}}}
    package = imported(posting(schema), method="post", components={"schemas": {"Addr": B}})
    assert "schema word $ref" in rows(package)


def test_a_member_that_no_value_fits_stays_one(manifest_of: ManifestOf) -> None:
    package = imported(posting({**B, "properties": {"a": False, "b": True}}), method="post")
    parameters = manifest_of(package).tools[0].parameters
    assert Validation().check(parameters, {"b": 1}) is None
    assert Validation().check(parameters, {"a": 1}) == "at a: {} is not allowed for 1"


def sent(package: Imported, manifest_of: ManifestOf, **arguments: Any) -> tuple[str, bytes | None]:
    outgoing = RequestTemplate.of(manifest_of(package).bindings["op"]).fill(arguments)
    return outgoing.url.raw_query_string, outgoing.body


def test_members_of_an_open_body_of_delete_are_sent_in_the_body(manifest_of: ManifestOf) -> None:
    package = imported(posting({**B, "additionalProperties": True}), method="delete")
    body = {"a": "1", "other": "2"}
    assert sent(package, manifest_of, body=body) == ("", b'{"a":"1","other":"2"}')


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_body_that_must_be_sent_is_sent_without_members(
    method: str, manifest_of: ManifestOf
) -> None:
    keys = {x: {"type": "apiKey", "in": "header", "name": f"X-{x}"} for x in ("a", "b")}
    package = imported(
        {**posting(B), "security": [{"a": [], "b": []}]},
        method=method,
        components={"securitySchemes": keys},
    )
    assert sent(package, manifest_of) == ("", b"{}")


@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
def test_an_object_in_one_of_a_choice_that_is_sent_as_json_text_is_said(word: str) -> None:
    choice = {word: [{"type": "object", "properties": {"in": B}}]}
    parameter = {"name": "q", "in": "query", "style": "deepObject", "schema": choice}
    said = imported({"parameters": [parameter]})
    assert rows(said)["query q"] == ("changed", "deepObject")


def test_a_key_without_the_name_of_its_header_is_refused() -> None:
    schemes = {"site": {"type": "apiKey", "in": "header"}}
    with pytest.raises(InvalidInput) as error:
        imported({"security": [{"site": []}]}, components={"securitySchemes": schemes})
    assert "security site (apiKey) refused: a binding cannot authenticate so" in error.value.why


def test_long_names_that_begin_alike_are_arguments_of_their_own(manifest_of: ManifestOf) -> None:
    names = [f"service.logging.destinations.monitored.resources.of.this.{x}" for x in "abcd"]
    names = [f"{x}.labels.{y}" for x in names for y in "xyz"]
    listed = [{"name": x, "in": "query", "schema": TEXT} for x in names]
    package = imported({"parameters": listed})
    keys = list(manifest_of(package).tools[0].parameters["properties"])
    assert len(keys) == len(names)
    query, _ = sent(package, manifest_of, **dict.fromkeys(keys, "1"))
    assert sorted(query.split("&")) == [f"{x}=1" for x in names]


def test_parts_among_parts_of_a_body_are_each_looked_at_once() -> None:
    refs = [[{"$ref": f"#/components/schemas/S{i}"}] * 12 for i in range(1, 9)]
    schemas: Json = {f"S{i}": {"allOf": x} for i, x in enumerate(refs)} | {"S8": {"type": "object"}}
    schema = {"$ref": "#/components/schemas/S0"}
    with pytest.raises(InvalidInput, match="can carry none"):  # and not after hours
        imported(posting(schema), method="post", components={"schemas": schemas})


@pytest.mark.parametrize("word", ["not", "if"])
def test_what_the_service_sets_may_be_forbidden_to_be_sent(
    word: str, manifest_of: ManifestOf
) -> None:
    schema = {**SERVICE_SETS, word: {"required": ["id"]}}
    schema |= {"then": {"required": ["b"]}} if word == "if" else {}
    parameters = manifest_of(imported(posting(schema), method="post")).tools[0].parameters
    assert Validation().check(parameters, {"body": {"a": "x"}}) is None
    assert Validation().check(parameters, {"body": {"a": "x", "id": "y"}}) is not None


def test_what_is_neither_true_nor_false_is_said() -> None:
    parameter = {"name": "q", "in": "query", "required": "yes", "schema": TEXT}
    body = {**posting(B)["requestBody"], "required": "yes"}
    package = imported({"parameters": [parameter], "requestBody": body}, method="post")
    listed = [(x.subject, x.fate, x.before) for x in package.notes]
    assert ("query q", "left out", '{"required": "yes"}') in listed
    assert ("body", "left out", '{"required": "yes"}') in listed


@pytest.mark.parametrize("value", [3, True, [1], "x"])
def test_odd_words_beside_an_operation_do_not_end_an_import(value: Any) -> None:
    assert "op" in imported({"callbacks": value}, webhooks=value).text
    listed = [{"name": "q", "in": [value]}]
    whole: Json = {"openapi": None, "swagger": "2.0", "host": "rain.dev", "schemes": ["https"]}
    assert "op" in imported({"parameters": listed}, **whole).text


@pytest.mark.parametrize("fixed", ["path", "secret"])
def test_a_parameter_that_a_router_takes_for_a_fixed_name_is_no_argument(
    fixed: str, manifest_of: ManifestOf
) -> None:
    listed = [{"name": "tenant", "in": "query", "required": True, "schema": TEXT}]
    schemes = {"site": {"type": "apiKey", "in": "query", "name": "Tenant"}}
    package = imported(
        {"parameters": listed, "security": [{"site": []}] if fixed == "secret" else []},
        path="/x?Tenant=rain" if fixed == "path" else "/x",
        components={"securitySchemes": schemes},
    )
    assert manifest_of(package).tools[0].parameters["properties"] == {}
    assert "query tenant" in rows(package)


def test_an_operation_that_is_not_there_is_told_with_the_nearest_name() -> None:
    paths = {f"/{i}": {"get": {"operationId": f"listThings{i}"}} for i in range(60)}
    paths["/pets"] = {"get": {"operationId": "pets-get_collection"}}
    with pytest.raises(UsageError, match="has no operation 'pets_getCollection'") as error:
        imported(paths=paths, wanted=("pets_getCollection",))
    assert error.value.fix == "--operation 'pets-get_collection'"
