"""Operations of an OpenAPI or Swagger document as tools, bound by HTTP."""

from capdex_publisher.authoring.imports.openapi.tool import import_openapi

__all__ = ["import_openapi"]
