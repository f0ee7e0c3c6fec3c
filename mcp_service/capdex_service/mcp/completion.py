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
    return _result(await _values(reader, params))


async def _values(reader: Reader, params: types.CompleteRequestParams) -> list[str]:
    argument, typed = params.argument.name, params.argument.value
    if isinstance(params.ref, types.PromptReference):
        name = check_name(params.ref.name)
        return (
            await versions_like(reader, name, typed, MAX_VALUES + 1) if argument == VERSION else []
        )
    if params.ref.uri not in TEMPLATES:
        raise InvalidInput(
            f"there is no template {params.ref.uri[:80]!r}", fix=f"they are {', '.join(TEMPLATES)}"
        )
    if argument == "name":
        wanted = params.ref.uri == OF_RELEASE + "prompt"
        return await names_like(reader, typed, MAX_VALUES + 1, with_prompt=wanted)
    known = (params.context and params.context.arguments) or {}
    if argument == "version" and "name" in known:
        return await versions_like(reader, known["name"], typed, MAX_VALUES + 1)
    return []


def _result(values: list[str]) -> types.CompleteResult:
    return types.CompleteResult(
        completion=types.Completion(values=values[:MAX_VALUES], has_more=len(values) > MAX_VALUES)
    )
