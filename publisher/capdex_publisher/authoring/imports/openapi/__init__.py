"""Operations of an OpenAPI or Swagger document as tools, bound by HTTP."""
