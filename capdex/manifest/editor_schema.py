"""The format of an `.acp.yaml` as JSON Schema 2020-12, for editors: `docs/schema/acp-1.json`.

    python -m capdex.manifest.editor_schema > docs/schema/acp-1.json

Made of the constants that `capdex.manifest.manifest` reads with (P7 to P10a). It never refuses
what the reader accepts, and refuses missing fields, wrong types, unknown words and long texts as
the reader does. What JSON Schema cannot say (RE2, references, signatures, public hosts) is checked
by the reader alone.
"""

from __future__ import annotations

import json
import re
import sys
from functools import lru_cache
from typing import Final

from capdex.json import Json
from capdex.json_schema import schema as schemas
from capdex.manifest import manifest, metadata, resources, tools, triggers
from capdex.manifest.bindings import binding
from capdex.manifest.bindings.http_request import HTTP_TYPES, METHODS
from capdex.manifest.editor_schema_parts import (
    FILLED,
    ONE_FILLED_LINE,
    keywords,
    link,
    listed,
    mapping,
    maybe,
    needed,
    packed_file,
    sent,
    subschema,
    text,
    when,
    whole,
    words,
)
from capdex.uri import MAX_URI_CHARS, NAME, PREFIX
from capdex.version import VERSION

ID: Final = "urn:capdex:schema:acp-1"
PATH: Final = "/schema/acp-1.json"  # at a node


@lru_cache(1)
def to_json() -> bytes:
    """Return the published schema as the file that editors read."""
    return (json.dumps(document(), ensure_ascii=False, indent=2) + "\n").encode()


def document() -> Json:
    """The published schema."""
    return {
        "$schema": schemas.DIALECT,
        "$id": ID,
        "title": "Agent capability package",
        "description": "What a capability is, what it keeps, what its model is told and may call.",
        "type": "object",
        "required": ["metadata", "schema"],
        "properties": {
            "metadata": _metadata(),
            "schema": _state(),
            "prompt": text(
                "What the model is told while this capability is in use.",
                most=manifest.MAX_PROMPT_BYTES,
            ),
            "tools": listed("What the model may call, in OpenAI's form.", _tool(), tools.MAX_TOOLS),
            "tool_bindings": _bindings(),
            "resources": listed("Files on IPFS.", packed_file(), resources.MAX_RESOURCES),
        },
        "$defs": {"keywords": keywords(), "schema": subschema()},
    }


# sections ---------------------------------------------------------------------------------------


def _metadata() -> Json:
    caip10 = rf"^(?:{metadata.EIP155.pattern}|(?!eip155:){metadata.CAIP10.pattern})$"
    languages = {
        "type": "string",
        "pattern": whole(metadata.LANGUAGE),
        "maxLength": metadata.MAX_LANGUAGE_CHARS,
    }
    fields = {
        "id": needed(
            "Who it is, with the exact version of this file (P1, P2).",
            f"{PREFIX}weather-reporter@1.0.0",
            most=MAX_URI_CHARS,
            pattern=f"^{PREFIX}(?:{NAME.pattern})@(?:{VERSION.pattern})$",
        ),
        "name": needed(
            "What people see: a title on one line.",
            "Weather Reporter",
            most=metadata.MAX_TITLE_CHARS,
            pattern=ONE_FILLED_LINE,
        ),
        "description": needed(
            f"What it does, for people and models; at most {metadata.MAX_DESCRIPTION_BYTES} bytes.",
            most=metadata.MAX_DESCRIPTION_BYTES,
        ),
        "summary": text(
            "The description in one line.", most=metadata.MAX_SUMMARY_CHARS, one_line=True
        ),
        "domain": text(
            "The field it belongs to; a word that is not listed counts as other.",
            *metadata.DOMAINS,
            most=metadata.MAX_WORD_CHARS,
        ),
        "tags": words("Words to find it by.", most=metadata.MAX_TAGS),
        "languages": listed(
            "The languages it speaks (BCP 47).",
            languages | {"examples": ["en", "zh-Hant"]},
            metadata.MAX_LANGUAGES,
        ),
        "license": text(
            "An SPDX expression.", "Apache-2.0", "MIT", most=metadata.MAX_WORD_CHARS, one_line=True
        ),
        "homepage": link("A page about it, for people.", "https://example.com/"),
        "proof": {  # another value is passed over, not refused
            "description": "A file under /.well-known/ on the homepage's host that names this name "
            "and its publisher.",
            "examples": ["https://example.com/.well-known/capdex.json"],
        },
        "repository": link("Where its source is kept.", "https://example.com/weather"),
        "triggers": listed("What brings it up.", _trigger(), triggers.MAX_TRIGGERS),
        "memory_scope": text(
            "Where its state lives.", "sc:weather", most=metadata.MAX_SCOPE_CHARS, one_line=True
        ),
        "permissions": mapping(
            "Permissions", {"require": words("The built-in state tools it calls.", *tools.BUILT_IN)}
        ),
        "llm_requirements": _llm_requirements(),
        "examples": listed(
            "What a person says, and the call that should come of it.",
            _example(),
            metadata.MAX_EXAMPLES,
        ),
        "author": text(
            "The signer, a DID URL with the fragment that names the key; capdex sign writes it.",
            most=metadata.MAX_DID_CHARS,
            one_line=True,
        ),
        "publisher": text(
            "The account that publishes it, CAIP-10; capdex sign writes it.",
            "eip155:1:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            most=metadata.MAX_DID_CHARS,
            pattern=caip10,
        ),
        "signature": text("The author's signature, multibase; capdex sign writes it (P5)."),
    }
    return mapping("Metadata", fields, ("id", "name", "description"))


def _trigger() -> Json:
    embedding = {
        "if": {"required": ["model"]},
        "then": {
            "properties": {
                "model": {"type": "string", "pattern": whole(triggers.MODEL)},
                "value": {
                    "pattern": whole(triggers.MULTIBASE),
                    "maxLength": triggers.MAX_SIGN_BITS_CHARS,
                },
            }
        },
        "else": {
            "properties": {"value": {"pattern": FILLED, "maxLength": triggers.MAX_PHRASE_BYTES}}
        },
    }
    keyword = {"pattern": ONE_FILLED_LINE, "maxLength": triggers.MAX_KEYWORD_CHARS}
    regex = {"pattern": FILLED, "maxLength": triggers.MAX_PATTERN_BYTES}
    fields = {
        "type": needed("How the value is matched with a message.", enum=triggers.TYPES),
        "value": {
            "description": "An RE2 pattern, a keyword, a phrase to embed, or a model's sign bits.",
            "type": "string",
        },
        "model": {"description": "For an embedding given as sign bits: id@version."},
    }
    return mapping(
        "Trigger",
        fields,
        ("type", "value"),
        allOf=[
            when("regex", {"properties": {"value": regex}}),
            when("keyword", {"properties": {"value": keyword}}),
            when("embedding", embedding),
        ],
    )


def _llm_requirements() -> Json:
    fields = {
        "model_family": words("Families of models it works with.", "gpt-4", "claude-3"),
        "specific_model_uri": text("The one model it needs.", most=2048, one_line=True),
        "min_context_window": maybe("The tokens it needs.", "integer") | {"minimum": 1},
        "required_features": words("What the model has to be able to do.", "tool_use_json_mode"),
    }
    return mapping("LLM requirements", fields)


def _example() -> Json:
    fields = {
        "say": needed("What a person says.", most=metadata.MAX_EXAMPLE_BYTES),
        "tool": text("The tool that should be called.", most=metadata.MAX_WORD_CHARS),
        "input": maybe("Its arguments.", "object"),
    }
    return mapping("Example", fields, ("say",))


def _of_object(about: str) -> Json:
    return maybe(f"{about}; #/schema means the package's schema.", "object") | {
        "$ref": "#/$defs/keywords",
        "properties": {"$id": False, "type": {"const": "object", "title": "One object"}},
    }


def _annotations() -> Json:
    about = {
        "read_only": "It changes nothing.",
        "destructive": "It may destroy what is there.",
        "idempotent": "Called again with the same arguments, it changes nothing more.",
    }
    fields = {name: maybe(about[name], "boolean") for name in tools.Annotations._fields}
    both = {name: {"const": True} for name in ("read_only", "destructive")}
    return mapping("Annotations", fields) | {
        "description": "Effects of a call, which decide whether a person is asked before it.",
        "not": {"required": list(both), "properties": both},
    }


def _tool() -> Json:
    built_in = "|".join(map(re.escape, tools.BUILT_IN))
    function = {
        "name": needed(
            f"Letters, digits, _ and -, or a built-in: {', '.join(tools.BUILT_IN)}.",
            *tools.BUILT_IN,
            pattern=f"^(?:{tools.NAME.pattern}|{built_in})$",
        ),
        "description": text(
            "When to call it, for the model.", most=tools.MAX_TOOL_DESCRIPTION_BYTES
        ),
        "parameters": _of_object("JSON Schema of the arguments"),
        "strict": maybe("Whether arguments have to follow the schema.", "boolean"),
        "output_schema": _of_object("JSON Schema of the output"),
        "annotations": _annotations(),
    }
    fields = {
        "type": needed("", enum=("function",)),
        "function": mapping("Function", function, ("name",)),
    }
    return mapping("Tool", fields, ("type", "function"))


_TARGETS: Final = {
    "url": (
        "https, to a public host; {placeholders} name parameters of the tool.",
        r"^[Hh][Tt][Tt][Pp][Ss]://\S+$",
    ),
    "target_did": ("The agent to ask: a DID, or one {placeholder}.", r"^(?:did:\S+|\{\S+\})$"),
    "service_method": ("The method to call.", ONE_FILLED_LINE),
    "method": ("The method of the request.", rf"^(?:{'|'.join(METHODS)})$"),
    "service_uri": (
        "The MCP service: a DID, or its https URL.",
        r"^(?:did:|[Hh][Tt][Tt][Pp][Ss]://)\S+$",
    ),
    "mcp_action": ("The action to call.", ONE_FILLED_LINE),
}


def _bindings() -> Json:
    kinds = {"type": needed("How the tool is called.", *binding.FIELDS)}
    cases = []
    for kind, names in binding.FIELDS.items():
        fields = {
            name: needed(about, most=binding.MAX_FIELD_CHARS, pattern=pattern)
            for name, (about, pattern) in _TARGETS.items()
            if name in names
        }
        more = sent(kind) if kind in HTTP_TYPES else {}
        cases.append(when(kind, {"required": list(names), "properties": fields | more}))
    return maybe("How each tool that is not built in is called, by its name.", "object") | {
        "maxProperties": tools.MAX_TOOLS,
        "propertyNames": {"not": {"enum": list(tools.BUILT_IN)}},
        "additionalProperties": mapping("Binding", kinds, ("type",), allOf=cases),
    }


def _state() -> Json:
    """The section `schema`: text, so that what it holds is checked by the reader alone."""
    uri = {
        "description": "The Schema URI.",
        "type": "string",
        "pattern": whole(schemas.SCHEMA_URI),
        "maxLength": schemas.MAX_SCHEMA_URI_CHARS,
    }
    return needed(
        "The state it keeps: JSON Schema 2020-12 as text that holds JSON. Write `schema: |`.",
        most=schemas.MAX_SCHEMA_BYTES,
    ) | {
        "contentMediaType": "application/json",
        "contentSchema": {
            "$ref": "#/$defs/keywords",
            "type": "object",
            "required": ["$id"],
            "properties": {"$id": uri},
        },
    }


if __name__ == "__main__":
    sys.stdout.buffer.write(to_json())
