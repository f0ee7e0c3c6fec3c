"""The explorer of a node: its pages with the parts of other rooms that they show."""

from __future__ import annotations

import time
from typing import Any, Final

import orjson

from capdex.errors import Code, Unavailable
from capdex_cli.config.settings import TEMPLATES
from capdex_cli.node.validate_file import FileValidation
from capdex_explorer.http.routes import Explorer
from capdex_explorer.site import Site
from capdex_indexer.http.status import Ask, Surface, answer_page
from capdex_service.http.problem import EXCEPTION_HANDLERS
from capdex_service.queries.reader import Reader

STATUS_S: Final = 1.0  # that the status on a page may be old: counting costs a database some work


def build_explorer(reader: Reader, surface: Surface, ask: Ask | None = None) -> Explorer:
    """Return the explorer over a reader; with `ask` another process knows the node's status."""

    kept_until, body = float("-inf"), b""

    async def status() -> dict[str, Any]:
        nonlocal kept_until, body
        if time.monotonic() > kept_until:
            page = await (ask("/status", None) if ask else answer_page(surface, "/status"))
            body = bytes(page.body)
        answer: dict[str, Any] = orjson.loads(body)
        if "chain" not in answer:  # the other process cannot read the index
            raise Unavailable(answer["message"], Code(answer["code"]))
        if answer["status"] == "ready" and time.monotonic() > kept_until:
            kept_until = time.monotonic() + STATUS_S  # a node that starts is ready any moment
        return answer

    validate = FileValidation()
    explorers = {network.chain_id: network.explorer_url for network in TEMPLATES.values()}
    site = Site(reader, status, validate, validate.close, block_explorers=explorers)
    return Explorer(site, EXCEPTION_HANDLERS)
