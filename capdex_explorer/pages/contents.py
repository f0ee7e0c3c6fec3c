"""What a package contains, read from the file that this node serves."""

from __future__ import annotations

from capdex.json import Json
from capdex.manifest.bindings.contacts import contacts, secret_uses
from capdex.manifest.fields import EXTENSION
from capdex.manifest.manifest import Manifest, effects


def contents_of(manifest: Manifest) -> Json:
    """Return what a package contains beside its metadata, as JSON."""
    document = manifest.document
    return {
        "title": manifest.title,
        "summary": manifest.summary,
        "description": manifest.description,
        "domain": manifest.domain,
        "tags": list(manifest.tags),
        "languages": list(manifest.languages),
        "license": manifest.license,
        "homepage": manifest.homepage,
        "proof": manifest.proof,
        "repository": manifest.repository,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "output_schema": tool.output_schema,
                "built_in": tool.built_in,
                "effects": effects(manifest, tool)._asdict(),
                "binding": (binding := manifest.bindings.get(tool.name)),
                "secrets": [x._asdict() for x in secret_uses({tool.name: binding or {}})],
            }
            for tool in manifest.tools
        ],
        "prompt": manifest.prompt,
        "schema": manifest.schema,
        "schema_uri": manifest.schema_uri,
        "triggers": [{"type": x.type, "value": x.value} for x in manifest.triggers],
        "unbound": list(manifest.unbound),
        "permissions": list(manifest.permissions),
        "contacts": contacts(manifest.bindings),
        "secrets": [
            {"secret": use.secret, "host": use.host, "tool": tool}
            for use, tool in secret_uses(manifest.bindings).items()
        ],
        "files": [x.to_json() | {"may_run": x.may_run} for x in manifest.resources],
        "memory_scope": manifest.memory_scope,
        "llm_requirements": manifest.llm_requirements,
        "examples": list(manifest.examples),
        "extensions": sorted(
            x for part in (document, manifest.metadata) for x in part if EXTENSION.fullmatch(x)
        ),
    }
