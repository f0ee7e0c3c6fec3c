"""Documents that clients of OpenAPI often get wrong, each with the right binding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import InvalidInput
from capdex.manifest.manifest import Manifest
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.openapi.tool import import_openapi
from capdex_router.invoke.validation import Validation

ManifestOf = Callable[[Imported], Manifest]
DOCUMENTS = Path(__file__).with_name("documents")


def imported(name: str, *operations: str, base: str = "") -> Imported:
    data = (DOCUMENTS / f"{name}.yaml").read_bytes()
    return write_package(import_openapi(data, name, operations, base=base))


def fates(package: Imported) -> dict[tuple[str, str], tuple[str, str, str]]:
    return {(x.source, x.subject): (x.fate, x.before, x.after) for x in package.notes}


def test_the_server_of_an_operation_is_before_that_of_the_document(manifest_of: ManifestOf) -> None:
    package = imported("operation-servers")
    assert manifest_of(package).bindings["getFiles"] == {
        "type": "http_get",
        "url": "https://upload.depotcase.dev/raw/files",
        "auth": {"type": "header", "name": "X-Site-Key", "secret": "SITE"},
    }
    assert "server" not in {x.subject for x in package.notes}


def test_lists_and_objects_of_a_query_are_sent_in_their_styles(manifest_of: ManifestOf) -> None:
    binding = manifest_of(imported("query-styles")).bindings["listThings"]
    assert binding["type"] == "http"
    assert binding["method"] == "GET"
    assert binding["parameters"] == {
        "ids": {"in": "query", "name": "ids", "style": "form", "explode": False},
        "tags": {"in": "query", "name": "tags", "style": "pipeDelimited", "explode": False},
        "filter": {"in": "query", "name": "filter", "style": "deepObject"},
        "point": {"in": "query", "name": "point", "style": "form", "explode": True},
    }


def test_a_query_parameter_may_be_json(manifest_of: ManifestOf) -> None:
    manifest = manifest_of(imported("json-query-parameter"))
    assert manifest.tools[0].parameters["required"] == ["filter"]
    rule = {"in": "query", "name": "filter", "content": "application/json"}
    assert manifest.bindings["find"]["parameters"] == {"filter": rule}


def test_an_operation_without_its_required_cookie_is_no_tool(manifest_of: ManifestOf) -> None:
    package = imported("required-cookie", "cart", "free")
    assert [x.name for x in manifest_of(package).tools] == ["free"]
    why = "a binding sends no parameter in cookie"
    assert fates(package)["cart", "cookie session"] == ("refused", "", why)
    with pytest.raises(InvalidInput, match="none of these operations"):
        imported("required-cookie", "cart")


def test_two_keys_are_sent_together_and_one_may_be_optional(manifest_of: ManifestOf) -> None:
    bindings = manifest_of(imported("two-keys-together", "a", "b")).bindings
    app_id = {"type": "header", "name": "X-App-Id", "secret": "APPID"}
    app_key = {"type": "header", "name": "X-App-Key", "secret": "APPKEY"}
    assert bindings["a"]["auth"] == [app_id, app_key]
    assert bindings["b"]["auth"] == [{**app_id, "optional": True}]


def test_json_of_a_vendor_keeps_its_media_type(manifest_of: ManifestOf) -> None:
    manifest = manifest_of(imported("vendor-json-body", "addThing", "setLabels"))
    assert manifest.bindings["addThing"] == {
        "type": "http_post",
        "url": "https://api.vendorcase.dev/things",
        "headers": {"Content-Type": "application/vnd.api+json"},
    }
    assert manifest.bindings["setLabels"]["body"] == {"parameter": "body"}
    assert manifest.tools[1].parameters["properties"]["body"] == {
        "type": "object",
        "additionalProperties": {"type": "string"},
    }


def test_a_relative_server_is_resolved_or_edited(manifest_of: ManifestOf) -> None:
    package = imported("relative-server")
    manifest = manifest_of(package)
    assert manifest.bindings["jobs"]["url"] == "https://api.example.com/api/v3/jobs"
    assert any("https://api.example.com/api/v3/jobs" in x for x in package.to_edit)
    said = fates(package)["document", "server"]
    assert said == ("changed", "/api/v3", "https://api.example.com/api/v3")
    assert fates(package)["document", "name"] == ("changed", "3D Print Hub", "d-print-hub")
    found = imported("relative-server", base="https://hub.dev/docs/openapi.yaml")
    assert manifest_of(found).bindings["jobs"]["url"] == "https://hub.dev/api/v3/jobs"


def test_a_variable_of_a_server_is_a_line_to_edit(manifest_of: ManifestOf) -> None:
    package = imported("templated-server")
    url = "https://your-tenant.printcase.dev/v2/jobs"
    assert manifest_of(package).bindings["jobs"]["url"] == url
    assert "tenant is a variable of the server: your-tenant" in package.to_edit


def test_parameters_in_other_scripts_keep_their_names(manifest_of: ManifestOf) -> None:
    package = imported("non-ascii-parameters")
    manifest = manifest_of(package)
    sent = {x["name"] for x in manifest.bindings["suche"]["parameters"].values()}
    assert sent == {"大小", "颜色", "größe"}
    described = [x["description"] for x in manifest.tools[0].parameters["properties"].values()]
    assert described == ["大小", "颜色", "größe"]
    assert fates(package)["suche", "query größe"] == ("changed", "größe", "the argument gro_e")


def test_a_required_key_is_a_secret_and_no_argument(manifest_of: ManifestOf) -> None:
    package = imported("key-as-parameter")
    manifest = manifest_of(package)
    assert list(manifest.tools[0].parameters["properties"]) == ["beach"]
    secret = {"type": "query", "name": "api_key", "secret": "API_KEY"}
    assert manifest.bindings["tide"]["auth"] == [secret]
    assert fates(package)["tide", "query api_key"][0] == "changed"


def test_references_stay_references_however_wide_a_schema_is(manifest_of: ManifestOf) -> None:
    schemas: dict[str, Any] = {
        f"A{i}": {
            "type": "object",
            "properties": {
                f"p{j}": (
                    {"$ref": f"#/components/schemas/A{i + 1}"}
                    if i < 5
                    else {"type": "string", "description": "d"}
                )
                for j in range(5)
            },
        }
        for i in range(6)
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/A0"}}}
    operation = {"operationId": "wide", "requestBody": {"required": True, "content": content}}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Wide", "version": "1"},
        "servers": [{"url": "https://api.widecase.dev"}],
        "paths": {"/a": {"post": operation}},
        "components": {"schemas": schemas},
    }
    package = write_package(import_openapi(json.dumps(document).encode(), "wide", []))
    parameters = manifest_of(package).tools[0].parameters
    assert parameters["properties"]["p0"] == {"$ref": "#/$defs/A1"}
    assert list(parameters["$defs"]) == ["A1", "A2", "A3", "A4", "A5"]


def test_a_schema_over_the_limits_keeps_what_is_near_and_says_the_rest(
    manifest_of: ManifestOf,
) -> None:
    names = [f"A{i}" for i in range(1_200)]
    schemas: dict[str, Any] = {
        name: {"type": "object", "properties": {"x": {"$ref": f"#/components/schemas/{after}"}}}
        for name, after in zip(names, [*names[1:], "A0"], strict=True)
    }
    package = write_package(import_openapi(large(schemas, 1), "deep", []))
    assert "$ref" in manifest_of(package).tools[0].parameters["properties"]["x"]
    assert any(x.after == "any value is accepted there" for x in package.notes)


def test_a_choice_takes_a_value_beside_a_part_that_accepts_any(manifest_of: ManifestOf) -> None:
    tall = {
        f"B{i}": {"type": "object", "properties": {"a": {"type": "string"}}} for i in range(900)
    }
    refs = {name: {"$ref": f"#/components/schemas/{name}"} for name in (*tall, "Small", "Tall")}
    choice = {"oneOf": [refs["Small"], refs["Tall"]]}
    schemas = {
        **tall,
        "Small": {"type": "object", "properties": {"kind": {"const": "small"}}},
        "Tall": {"allOf": [{"type": "object", "properties": refs}, {"required": ["kind"]}]},
        "A0": {
            "type": "object",
            "properties": {
                "far": choice,
                "gone": {"oneOf": [{"type": "string"}, {"$ref": "models.json#/Thing"}]},
                "other": {"not": {"$ref": "models.json#/Thing"}},
            },
        },
    }
    package = write_package(import_openapi(large(schemas, 1), "wide", []))
    (tool,) = manifest_of(package).tools
    given = {"far": {"kind": "small"}, "gone": "a text"}
    assert {
        name: Validation().check(tool.parameters, {name: x}) for name, x in given.items()
    } == dict.fromkeys(given)
    assert [x.fate for x in package.notes if x.subject == "schema word oneOf"] == ["changed"]


def test_tools_that_do_not_fit_together_are_weighed() -> None:
    schemas: dict[str, Any] = {
        "A0": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(300)}}
    }
    draft = import_openapi(large(schemas, 16), "wide", [f"send{i}" for i in range(16)])
    with pytest.raises(InvalidInput, match="do not fit into one package") as told:
        write_package(draft)
    assert "send0 has " in told.value.why


def large(schemas: dict[str, Any], operations: int) -> bytes:
    """A document of operations whose body is the schema A0."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/A0"}}}
    body = {"required": True, "content": content}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Large"},
        "servers": [{"url": "https://api.largecase.dev"}],
        "paths": {
            f"/a{i}": {"post": {"operationId": f"send{i}", "requestBody": body}}
            for i in range(operations)
        },
        "components": {"schemas": schemas},
    }
    return json.dumps(document).encode()


def test_an_operation_with_a_body_and_form_fields_is_refused() -> None:
    both = [
        {"name": "pet", "in": "body", "schema": {"type": "object"}},
        {"name": "city", "in": "formData", "type": "string"},
    ]
    document = {
        "swagger": "2.0",
        "host": "rain.dev",
        "paths": {"/b": {"post": {"operationId": "send", "parameters": both}}},
    }
    with pytest.raises(InvalidInput) as error:
        import_openapi(json.dumps(document).encode(), "rain", ["send"])
    assert "Swagger 2.0 allows body or formData, not both" in error.value.why


def test_a_swagger_document_is_read_by_its_own_rules(manifest_of: ManifestOf) -> None:
    ids = {"name": "ids", "in": "query", "type": "array", "items": {"type": "string"}}
    form = [
        {"name": "city", "in": "formData", "type": "string", "required": True},
        {"name": "days", "in": "formData", "type": "array", "items": {"type": "integer"}},
    ]
    document = {
        "swagger": "2.0",
        "info": {"title": "Rain"},
        "host": "rain.dev",
        "basePath": "/v2",
        "schemes": ["http", "https"],
        "securityDefinitions": {"key": {"type": "basic"}},
        "security": [{"key": []}],
        "paths": {
            "/a": {
                "get": {"operationId": "list", "parameters": [{**ids, "collectionFormat": "pipes"}]}
            },
            "/b": {"post": {"operationId": "send", "parameters": form}},
        },
    }
    data = json.dumps(document).encode()
    bindings = manifest_of(write_package(import_openapi(data, "rain", ["list", "send"]))).bindings
    rule = {"in": "query", "name": "ids", "style": "pipeDelimited", "explode": False}
    assert bindings["list"]["url"] == "https://rain.dev/v2/a"
    assert bindings["list"]["parameters"] == {"ids": rule}
    assert bindings["list"]["auth"] == [{"type": "basic", "secret": "KEY"}]
    assert bindings["send"]["body"] == {"content": "application/x-www-form-urlencoded"}
    days = {"in": "body", "name": "days", "style": "form", "explode": False}
    assert bindings["send"]["parameters"] == {"days": days}
