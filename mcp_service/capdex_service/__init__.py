"""Answers over a read-only index: MCP tools by HTTP and stdio, and JSON pages of names."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_service.http.routes import ReaderRoutes as ReaderRoutes
    from capdex_service.http.routes import build_reader_routes as build_reader_routes
    from capdex_service.limits.options import ClientLimits as ClientLimits
    from capdex_service.queries.reader import Reader as Reader
    from capdex_service.queries.reader import StorageProver as StorageProver
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
