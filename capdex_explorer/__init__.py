"""The explorer: a node's index as web pages for people, read by the queries of `mcp_service`."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_explorer.http.routes import Explorer as Explorer
    from capdex_explorer.site import Site as Site
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
