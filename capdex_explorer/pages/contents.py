"""What a package contains, read from the file that this node serves."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from capdex.json import Json
from capdex.manifest.bindings.contacts import contacts, secret_uses
from capdex.manifest.fields import EXTENSION
from capdex.manifest.manifest import Manifest, effects, read
from capdex_explorer.site import Site
from capdex_service.queries.releases import ShownRelease, find_release

MAX_CACHED: Final = 128  # manifests: parsing one takes longer than all else on a page


# The manifests read last, by the sha256 of their files.
_CACHED: Final[OrderedDict[str, Manifest]] = OrderedDict()


async def open_release(
    site: Site, name: str, version: str | None
) -> tuple[ShownRelease, Manifest | None]:
    """Return a release and its manifest, which is None if this node does not serve its file."""
    shown = await find_release(site.reader, name, version)
    if shown.data is None:
        return shown, None
    digest: str = shown.json["release"]["sha256"]
    if digest not in _CACHED:
        _CACHED[digest] = (await site.reader.run(read, shown.data, long=True)).require()
        while len(_CACHED) > MAX_CACHED:
            _CACHED.popitem(last=False)
    return shown, _CACHED[digest]


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
