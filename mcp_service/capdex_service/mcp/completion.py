"""Completion of names and versions in resource templates and prompts."""

from __future__ import annotations

from typing import Final

import mcp_types as types

from capdex.errors import InvalidInput
from capdex.uri import check_name
from capdex_service.mcp.prompts import VERSION
from capdex_service.mcp.resources import OF_NAME, OF_RELEASE, PARTS
from capdex_service.queries.names import names_like, versions_like
from capdex_service.queries.reader import Reader

MAX_VALUES: Final = 100  # more are not allowed in one answer
TEMPLATES: Final = (OF_NAME, *(OF_RELEASE + part for part in PARTS))


async def complete(reader: Reader, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Return values that begin with what was typed; none for an argument of free text.

    Raises InvalidInput for a template that is not one of ours, or a name that cannot exist.
    """
    values = await _values(reader, params)
    return types.CompleteResult(
        completion=types.Completion(values=values[:MAX_VALUES], has_more=len(values) > MAX_VALUES)
    )


async def _values(reader: Reader, params: types.CompleteRequestParams) -> list[str]:
    argument, typed = params.argument.name, params.argument.value
    if isinstance(params.ref, types.PromptReference):
        known = {"name": check_name(params.ref.name)}
    elif params.ref.uri not in TEMPLATES:
        raise InvalidInput(
            f"there is no template {params.ref.uri[:80]!r}", fix=f"they are {', '.join(TEMPLATES)}"
        )
    elif argument == "name":
        wanted = params.ref.uri == OF_RELEASE + "prompt"
        return await names_like(reader, typed, MAX_VALUES + 1, with_prompt=wanted)
    else:
        known = (params.context and params.context.arguments) or {}
    if argument == VERSION and "name" in known:
        return await versions_like(reader, known["name"], typed, MAX_VALUES + 1)
    return []
