"""Answers over a read-only index: MCP tools by HTTP and stdio, and JSON pages of names."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_service.http.routes import ReaderRoutes, build_reader_routes
    from capdex_service.limits.options import ClientLimits
    from capdex_service.queries.reader import Reader, StorageProver

__all__ = ["ClientLimits", "Reader", "ReaderRoutes", "StorageProver", "build_reader_routes"]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
