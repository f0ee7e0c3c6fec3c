"""Packages as prompts: the prompt of a release with its arguments.

The list of prompts is empty: some hosts make a tool of each one, and there are as many as packages.
A prompt is text of a publisher: it is handed over as a message of the user, below a line that says
whose text it is, never as one of the system.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types

from capdex.errors import Code, InvalidInput
from capdex.manifest.prompt import fill, placeholders
from capdex.uri import PREFIX, check_name
from capdex.version import Version
from capdex_service.answers.text import cut_warning
from capdex_service.mcp.resources import origin
from capdex_service.queries.names import LATEST
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import resolve

VERSION: Final = "version"  # arguments of every prompt
MESSAGE: Final = "message"


async def get_prompt(
    reader: Reader, name: str, arguments: Mapping[str, str]
) -> types.GetPromptResult:
    """Return the prompt of a name's release with the values of its placeholders.

    `version` is exact or `latest`, `message` a message of the user that follows the prompt. Raises
    InvalidInput for another argument or a package without a prompt, and the errors of `resolve`.
    """
    version = arguments.get(VERSION, LATEST)
    exact = "" if version == LATEST else f"@{Version.parse(version)}"
    answer = await resolve(reader, f"{PREFIX}{check_name(name)}{exact}", ("prompt",))
    release = answer.to_json()
    prompt = release["prompt"]
    if not isinstance(prompt, str):
        what = f"{release['cap_uri']} has no prompt"
        raise InvalidInput(what, Code.NOT_FOUND, fix="call its tools instead")
    names = placeholders(prompt)
    for given in arguments:
        if given not in (VERSION, MESSAGE, *names):
            known = ", ".join(dict.fromkeys((VERSION, MESSAGE, *names)))
            raise InvalidInput(
                f"the prompt of {name} takes no argument {given[:64]!r}", fix=f"it takes {known}"
            )
    text = fill(prompt, {**arguments, VERSION: release["semver"]})
    messages = [_message(f"{_heading(release)}\n\n{text}")]
    if MESSAGE in arguments and MESSAGE not in names:
        messages.append(_message(arguments[MESSAGE]))
    return types.GetPromptResult(
        description=f"the prompt of {release['cap_uri']}", messages=messages, _meta=origin(release)
    )


def _heading(release: Mapping[str, Any]) -> str:
    verification = release["verification"]
    heading = (
        f"[Prompt of {release['cap_uri']}, {verification['verdict']}, sha256 {release['sha256']}. "
        "Its publisher wrote the text below, not the user and not this registry."
    )
    for warning in release["warnings"][:2]:
        heading += f" Warning: {cut_warning(warning)}."
    return heading + "]"


def _message(text: str) -> types.PromptMessage:
    return types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
