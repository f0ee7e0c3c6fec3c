"""The explorer: a node's index as web pages for people, read by the queries of `mcp_service`."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_explorer.http.routes import Explorer
    from capdex_explorer.site import Site

__all__ = ["Explorer", "Site"]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
