"""Operations of an OpenAPI or Swagger document as tools, bound by HTTP."""

from publisher.authoring.imports.openapi.tool import import_openapi

__all__ = ["import_openapi"]
