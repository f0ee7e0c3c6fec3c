"""Write a first `.acp.yaml` to edit: valid as it is, with comments where there is a choice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from capdex.errors import InvalidInput
from capdex.manifest import manifest
from capdex.problems import Problem
from capdex.uri import PREFIX, CapabilityURI, check_name

FIRST_VERSION: Final = "0.1.0"
PLACEHOLDER_HOST: Final = "api.example.com"
DESCRIPTION_END: Final = " does, in a sentence or two, for people and models."
TOOL_DESCRIPTION: Final = "What the tool gives back, and when to call it."


class PackageKind(StrEnum):
    """Parts of a new package."""

    TOOL = "tool"  # a prompt, and a tool that calls a service over https
    PROMPT = "prompt"  # a prompt alone


def scaffold(
    name: str,
    *,
    version: str = FIRST_VERSION,
    title: str | None = None,
    description: str | None = None,
    summary: str | None = None,
    keywords: Sequence[str] = (),
    tags: Sequence[str] = (),
    domain: str | None = None,
    license: str | None = None,
    homepage: str | None = None,
    repository: str | None = None,
    kind: PackageKind = PackageKind.TOOL,
    schema: str = "",
) -> str:
    """Return the text of a new package that is valid.

    Omitted texts get a placeholder made of the name. `keywords` become triggers.
    Editors check the file with the JSON Schema at the URL `schema`, if there is one. Raises
    InvalidInput if a value does not fit its field.
    """
    has_tool = kind is PackageKind.TOOL
    words = check_name(name).replace("-", " ")
    uri = str(CapabilityURI.exact(f"{PREFIX}{name}@{version}"))
    title = words.title() if title is None else title
    optional = {
        "summary": summary,
        "domain": domain,
        "tags": list(tags) or None,
        "license": license,
        "homepage": homepage,
        "repository": repository,
    }
    sections = [
        _METADATA.format(
            uri=uri,
            title=quote(title),
            description=quote(description or f"What {title}{DESCRIPTION_END}"),
            optional="".join(
                f"  {key}: {quote(value)}\n" for key, value in optional.items() if value
            ),
            triggers="\n".join(
                f"    - {{type: keyword, value: {quote(word)}}}" for word in keywords or [words]
            ),
            name=name,
        ),
        empty_schema(name),
        _PROMPT.format(hint=" Use get_answer to look things up." if has_tool else ""),
        *([_TOOLS.format(name=name, description=TOOL_DESCRIPTION)] if has_tool else []),
    ]
    modeline = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    text = modeline + "\n".join(sections)
    reading = manifest.read(text.encode("utf-8", "surrogatepass"))
    if reading.problems:
        raise misfit(reading.problems)
    return text


def misfit(problems: Sequence[Problem]) -> InvalidInput:
    """Return the error of a value that was given and does not fit its field."""
    first = problems[0]
    return InvalidInput(
        f"a value does not fit {first.path or 'the file'}: {first.message}",
        why=str(first.code),
        fix=first.hint or "give another value",
        details={"problems": [problem.to_json() for problem in problems]},
    )


def empty_schema(name: str) -> str:
    """Return the section of a package that keeps no state."""
    return _SCHEMA.format(name=name)


def placeholder_url(path: str) -> str:
    """Return an address that the author must replace before publishing."""
    return f"https://{PLACEHOLDER_HOST}/{path}"


def quote(value: object) -> str:
    """Return a value as YAML, of which JSON is a part; text is quoted, so that it stays text."""
    return json.dumps(value, ensure_ascii=False)


_METADATA = """\
# An agent capability package. Edit it, then:  capdex validate FILE  ·  capdex publish FILE
metadata:
  # Who it is: the name can never change, and a published version is never used again.
  id: {uri}
  name: {title}
  description: {description}
{optional}\
  # When it is meant: what a person says that should bring this capability up.
  triggers:
{triggers}
    # - {{type: regex, value: '(?i)\\bweather in \\w+'}}           # RE2 syntax
    # - {{type: embedding, value: "what is the weather like"}}   # a phrase that means the same
  # Where its state lives, and which built-in state.* tools it may call.
  memory_scope: sc:{name}
  permissions:
    require: []
  # capdex sign adds author, publisher and signature.
"""

_SCHEMA = """\
# The state that this capability keeps: JSON Schema 2020-12, as text.
schema: |
  {{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "did:nuwa:state:{name}#v1",
    "type": "object",
    "properties": {{}}
  }}
"""

_PROMPT = """\
# What the model is told while this capability is in use.
prompt: |
  You help with one task. Ask when something is unclear, and say so when you do not know.{hint}
"""

_TOOLS = """\
# What the model may call (OpenAI's tool form) …
tools:
  - type: function
    function:
      name: get_answer
      description: "{description}"
      parameters:
        type: object
        properties:
          question: {{type: string, description: "What is asked"}}
        required: [question]
      # output_schema: {{type: object, properties: {{answer: {{type: string}}}}}}  # what it gives
      # annotations: {{read_only: true}}  # or destructive, idempotent: when a person is asked

# … and how a call is carried out. http_get sends the arguments as query parameters; the other
# types are http_post, http, mcp_service and nuwa_a2a.
tool_bindings:
  get_answer:
    type: http_get
    url: "https://api.example.com/{name}"
    # parameters: {{question: {{in: query, name: q}}}}                   # or path, header, body
    # headers: {{Accept: application/json}}
    # auth: {{type: header, name: X-API-Key, secret: EXAMPLE_API_KEY}}  # or bearer, basic
"""
