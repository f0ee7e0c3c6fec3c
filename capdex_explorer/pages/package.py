"""The pages of one release: overview, tools, texts, exact bytes, checks, and its triggers."""

from __future__ import annotations

from typing import Any, Final

import orjson

from capdex.encoding.abi import raw_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import CapdexError, Code, InvalidInput
from capdex.json import Json
from capdex.manifest.manifest import Manifest
from capdex.proof.document import Proof
from capdex.proof.verify import Anchor, verify
from capdex.routing.triggers import TriggerSet
from capdex.uri import CapabilityURI
from capdex_explorer.pages.contents import contents_of
from capdex_explorer.pages.growth import add_growth
from capdex_explorer.site import PageRequest, Site, View, release_tag
from capdex_explorer.views.markdown import markdown
from capdex_explorer.views.schema_rows import MAX_ROWS, schema_rows
from capdex_explorer.views.snippets import checking_commands, connections
from capdex_explorer.views.text import visible
from capdex_explorer.views.verdicts import about_of, title_of
from capdex_indexer.query.search.route import MAX_MESSAGE_CHARS
from capdex_service.queries import proofs, releases

MAX_TOOL_CHARS: Final = 24_000  # of the tools on one page, which shows their texts twice
MAX_FILE_CHARS: Final = 60_000  # of a file on one page: some 40 kB compressed if it is random
SHOWN_VERSIONS: Final = 5  # on the first page of a package
LINE_CHARS: Final = 40  # that a line number takes


async def overview(site: Site, request: PageRequest) -> View:
    """Show what a release is and does, and where its bytes come from."""
    reader, name = site.reader, request.parts["name"]
    shown, data = await open_page(
        site, request, "overview", lambda x: releases.list_versions(x, reader, name, SHOWN_VERSIONS)
    )
    data |= await _proof(site, request, shown.json["release"])
    data["newest"] = shown.more[:SHOWN_VERSIONS]
    await add_growth(site, data["newest"])
    if shown.manifest is not None:
        await site.reader.run(markdown, shown.manifest.description, long=True)  # and kept
        skill = bool(shown.manifest.resources) or not shown.manifest.tools
        data["connections"] = connections(request.base, shown.manifest.uri, skill=skill)
    return page_view("package.html", data, shown.manifest, live=data["proof"] is not None)


async def tools(site: Site, request: PageRequest) -> View:
    """Show the tools of a release with their parameters."""
    shown, data = await open_page(site, request, "tools")
    if data["contents"] is not None:
        _take_tools(data["contents"], request)
    return page_view("package_tools.html", data, shown.manifest, "tools")


async def texts(site: Site, request: PageRequest) -> View:
    """Show the prompt and the state schema of a release."""
    shown, data = await open_page(site, request, "texts")
    if shown.manifest is not None:
        await site.reader.run(markdown, shown.manifest.prompt or "", long=True)  # and kept
    return page_view("package_texts.html", data, shown.manifest, "prompt and state")


async def exact_bytes(site: Site, request: PageRequest) -> View:
    """Show the file of a release, line by line."""
    shown, data = await open_page(site, request, "bytes")
    data |= {"lines": None, "size_bytes": None, "first_line": 1, "before": None, "after": None}
    if shown.data is not None:
        text = shown.data.decode("utf-8")
        data |= {"size_bytes": len(shown.data)} | lines_from(text, request, MAX_FILE_CHARS)
    return page_view("package_bytes.html", data, shown.manifest, "exact bytes")


async def checks(site: Site, request: PageRequest) -> View:
    """Show each check of a release; with `proof` prove it from the contract's storage."""
    shown, data = await open_page(site, request, "checks")
    data |= await _proof(site, request, shown.json["release"])
    data["bytes_address"] = "" if shown.data is None else data["address"] + "/bytes"
    live = data["proof"] is not None
    return page_view("package_checks.html", data, shown.manifest, "checks", live=live)


async def triggers(site: Site, request: PageRequest) -> View:
    """Show the triggers of a release, and which of them a message hits."""
    shown, data = await open_page(site, request, "triggers")
    message = request.text("message")
    if len(message) > MAX_MESSAGE_CHARS:
        raise InvalidInput(f"the message has more than {MAX_MESSAGE_CHARS} characters")
    hits = None
    if message and shown.manifest is not None:
        hits = await site.reader.run(_hits, shown.manifest, message, long=True)
    data |= {"message": message, "hits": hits}
    return page_view("package_triggers.html", data, shown.manifest, "triggers")


async def open_page(
    site: Site, request: PageRequest, tab: str, more: releases.Read = lambda _: None
) -> tuple[releases.ShownRelease, dict[str, Any]]:
    """Return a release with what `more` reads, and the page's data."""
    name, version = request.parts["name"], request.parts.get("version")
    wanted = site.reader, name, version, more
    shown = await site.reader.read(releases.open_release, *wanted, long=True)
    release = shown.json["release"]
    await add_growth(site, [release])
    data = shown.json | {
        "tab": tab,
        "address": f"/c/{name}/{release['semver']}",
        "contents": None if shown.manifest is None else contents_of(shown.manifest),
        "instead": await _replacement(site, release),
    }
    return shown, data


async def _replacement(site: Site, release: Json) -> Json | None:
    """Return the name that the owner of a deprecated one names in its place, and its fate.

    The owner may name any, also the deprecated one itself, or one that is deprecated in turn.
    """
    name: str | None = release["status"]["replaced_by"]
    if not name:
        return None
    fate = ", which this node does not list"
    try:
        instead = (await site.reader.read(releases.find_release, site.reader, name))["release"]
        if instead["latest"]:
            fate = ", which is deprecated, too" if instead["status"]["name_deprecated"] else ""
    except InvalidInput:
        instead = {"latest": False}
    if name == release["name"]:
        instead, fate = {"latest": False}, ", which is this name itself"
    return {"name": name, "listed": instead["latest"], "fate": fate}


def _hits(manifest: Manifest, message: str) -> list[Json]:
    """Return the triggers that a message hits, with the text in the message."""
    page = TriggerSet().with_packages([(manifest.uri.name, manifest.triggers)]).match(message, 1)
    return [
        {
            "type": str(trigger.kind),
            "value": trigger.text,
            "broad": trigger.broad,
            "score": round(match.score, 3),
            "snippet": {"text": message, "highlights": [trigger.span] if trigger.span else []},
        }
        for match in page.matches
        for trigger in match.triggers
    ]


async def _proof(site: Site, request: PageRequest, release: Json) -> Json:
    """Return the commands that check a release, and its proof if the request wants one."""
    return {
        "proof": await _prove(site, release) if "proof" in request.query else None,
        "commands": checking_commands(release, request.base),
    }


def _take_tools(contents: Json, request: PageRequest) -> None:
    """Leave the tools of one page in `contents`, and add the address of the next page."""
    first = min(request.number("from", 1), max(1, len(contents["tools"]))) - 1
    taken: list[Json] = []
    rows = chars = 0
    for tool in contents["tools"][first:]:
        rows += len(schema_rows(tool["parameters"])) + len(schema_rows(tool["output_schema"]))
        chars += len(orjson.dumps(tool))
        if taken and (rows > MAX_ROWS or chars > MAX_TOOL_CHARS):
            break
        taken.append(tool)
    after = first + len(taken)
    more = after < len(contents["tools"])
    contents["more_tools"] = request.address(**{"from": str(after + 1)}) if more else None
    contents["tools_here"] = taken


def lines_from(text: str, request: PageRequest, most_chars: int) -> Json:
    """Return the lines of a file from the requested one on, as many as a page holds."""
    lines = text.split("\n")
    first = min(request.number("from", 1), len(lines))
    pages, chars = [1], 0  # the first lines of all pages
    for number, line in enumerate(lines, 1):
        chars += len(line) + LINE_CHARS
        if chars > most_chars and number > pages[-1]:
            pages.append(number)
            chars = len(line)
    at = max(i for i, start in enumerate(pages) if start <= first)
    addresses = [request.address(**{"from": str(start)}) for start in pages]
    last = pages[at + 1] - 1 if at + 1 < len(pages) else len(lines)
    return {
        "lines": lines[pages[at] - 1 : last],
        "first_line": pages[at],
        "before": addresses[at - 1] if at else None,
        "after": addresses[at + 1] if at + 1 < len(addresses) else None,
    }


async def _prove(site: Site, release: Json) -> Json:
    """Have the chain's storage prove a release, and verify the proof; or say why not."""
    chain = release["chain"]
    try:
        uri = CapabilityURI.parse(release["cap_uri"])
        answer = (await proofs.resolve(site.reader, uri, "exact", None)).to_json()
        proof = Proof.parse(answer["proof"])
        contract = raw_address(chain["contract"])
        anchor = Anchor(chain["chain_id"], contract, proof.block_hash)
        proven = await site.reader.run(verify, proof, anchor, long=True)
    except CapdexError as error:
        if error.code in (Code.DATABASE_UNAVAILABLE, Code.INTERNAL):
            raise
        return {"held": False, "error": error.to_json()}
    on_chain = next(iter(proven.releases), None)
    return {
        "held": on_chain is not None and on_chain.sha256.hex() == release["sha256"],
        "error": None,
        "block_number": proven.block.number,
        "block_hash": to_hex(proven.block.hash),
        "sha256": None if on_chain is None else on_chain.sha256.hex(),
        "yanked": on_chain is not None and on_chain.yanked,
    }


def page_view(
    template: str, data: Json, manifest: Manifest | None, part: str = "", *, live: bool = False
) -> View:
    """Return the view of a release; `part` is its place in the title, empty for the overview."""
    release = data["release"]
    title = f"{release['name']} {release['semver']}" + (f": {part}" if part else "")
    summary, linked = f"A release of {release['name']} whose file this node does not show.", None
    if manifest is not None:
        summary = f"From the publisher: {visible(about_of(release))}"
        linked = None if part else _linked_data(manifest, release)
    latest = f"/c/{release['name']}" if release["latest"] and not part else ""
    return View(
        template,
        title,
        data,
        description=summary[:300],
        live=live,
        canonical=latest,
        cache_tag=release_tag(release),
        linked_data=linked,
        feed=f"/c/{release['name']}/feed.atom",
    )


def _linked_data(manifest: Manifest, release: Json) -> Json:
    """Return the release as schema.org describes software."""
    fields = {
        "@context": "https://schema.org",
        "@type": "SoftwareApplication",
        "name": title_of(release) or release["name"],
        "identifier": release["cap_uri"],
        "applicationCategory": manifest.domain,
        "description": about_of(release),
        "softwareVersion": release["semver"],
        "license": manifest.license,
        "keywords": ", ".join(manifest.tags),
        "author": {"@type": "Person", "identifier": release["verification"]["signer"]},
    }
    return {key: value for key, value in fields.items() if value}
