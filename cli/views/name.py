"""How a name stands on chain, from the chain's own logs: its owner, its releases, its flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.semver import Version, latest
from capdex.uri import PREFIX
from cli.terminal.app import App
from cli.terminal.text import safe
from cli.views.progress import open_registry
from cli.views.release import flags, name_of

if TYPE_CHECKING:
    from capdex.registry.state import NameState, ReleaseState
    from publisher.registry.registry import Registry

NODE_PAGE: Final = 50
MAX_NODE_PAGES: Final = 20  # a thousand names of one account; the chain tells them all

Json = dict[str, Any]


def asks_chain(app: App) -> bool:
    """Whether the chosen network says how to ask the chain."""
    network = app.settings.need_network()
    return bool(network.rpc_url and network.chain_id and network.registry)


async def standing_of(app: App, name: str, *, all_of_it: bool = False) -> Json:
    """A name from the chain as JSON; raises InvalidInput NOT_FOUND if nobody claimed it.

    Where the endpoint does not give its whole history, what only that tells is null, `complete`
    is false, and a warning says why; with `all_of_it` that raises Unavailable instead.
    """
    from publisher.registry.name_history import name_state, name_view

    app.settings.need_network("rpc_url", "chain_id", "registry")
    complete = True
    async with open_registry(app) as registry:
        try:
            state, block = await name_state(registry, name)
        except Unavailable as error:
            if all_of_it or error.code is not Code.RPC_UNAVAILABLE:
                raise
            state, block = await name_view(registry, name)
            app.output.warn(f"{safe(error.message)}: {safe(error.why)}")
            complete = False
        if state is None:
            raise InvalidInput(
                f'nobody has claimed the name "{name}"',
                Code.NOT_FOUND,
                why=f"the registry {registry.address} does not know it, as of block {block}",
                fix="check how it is written, or find it: capdex search",
            )
        votes = await _votes(app, registry, name)
    told = describe(name, state)
    if not complete:
        told |= {"maintainers": None, "message": None, "replaced_by": None}
    return told | {
        "votes": votes,
        "releases": [_release(name, x) for x in reversed(state.releases)],
        "complete": complete,
        "source": "chain",
        "block_number": block,
    }


def describe(name: str, state: NameState) -> Json:
    """Who has a name, and what its owner says of it."""
    return {
        "name": name,
        "owner": state.owner,
        "renounced": state.renounced,
        "pending_owner": state.pending_owner,
        "maintainers": sorted(state.maintainers),
        "deprecated": state.deprecated,
        "message": (state.message or None) if state.deprecated else None,
        "replaced_by": (state.replaced_by or None) if state.deprecated else None,
    }


async def _votes(app: App, registry: Registry, name: str) -> Json | None:
    """How the votes stand; None where the network has none."""
    network = app.settings.need_network()
    if not network.votes:
        return None
    from publisher.registry.votes import Votes

    tally = await Votes(registry.chain, network.votes).tally(name)
    return {"up": tally.upvotes, "down": tally.downvotes}


def _release(name: str, release: ReleaseState) -> Json:
    return {
        "cap_uri": f"{PREFIX}{name}@{release.semver}",
        "semver": release.semver,
        "ipfs_cid": release.cid,
        "sha256": release.sha256.hex(),
        "chain": {
            "publisher": release.publisher or None,
            "sequence": release.sequence or None,
        },
        "status": {
            "yanked": release.yanked,
            "yank_reason": (release.yank_reason or None) if release.yanked else None,
            "deprecated": release.deprecated,
            "deprecation_message": (release.message or None) if release.deprecated else None,
        },
    }


def joined(standing: Json, of_node: list[Json], *, asked_node: bool) -> list[Json]:
    """Every release on chain, highest version first, with what the node makes of it.

    Flags and bytes are the chain's. A release that only the node has is kept, with a warning.
    """
    known = {x.get("semver"): x for x in of_node}
    found = []
    for on_chain in standing["releases"]:
        answer = known.pop(on_chain["semver"], None)
        if answer is None:
            state = "not indexed" if asked_node else "on chain"
            found.append(on_chain | {"availability": state, "warnings": []})
        elif answer.get("sha256") != on_chain["sha256"]:
            words = "the node has other bytes for this version than the chain"
            found.append(on_chain | {"availability": "not indexed", "warnings": [words]})
        else:
            status = answer["status"] if isinstance(answer.get("status"), dict) else {}
            told = on_chain["status"]
            if not standing["complete"]:  # words that the node has are better than none
                told = {key: x for key, x in told.items() if x is not None}
            found.append(answer | {"status": status | told})
    strays = [
        x | {"warnings": ["the node has this release, and the chain has not"]}
        for x in known.values()
    ]
    return sorted(found, key=lambda x: Version.parse(x["semver"]), reverse=True) + strays


def rows_of(standing: Json) -> list[tuple[str, str]]:
    """How a name stands, as (label, text)."""
    owner = "nobody: given up for good" if standing["renounced"] else str(standing["owner"])
    rows = [("owner", owner)]
    rows += [("maintainer", x) for x in standing["maintainers"] or []]
    if standing["maintainers"] is None:
        rows.append(("maintainers", "not known: the endpoint does not give the name's history"))
    if standing["pending_owner"]:
        rows.append(("on offer to", standing["pending_owner"]))
    if standing["deprecated"]:
        instead = f"; use {standing['replaced_by']} instead" if standing["replaced_by"] else ""
        words = safe(standing["message"] or "") + instead
        rows.append(("deprecated", words.removeprefix("; ") or "by its owner"))
    if standing["votes"]:
        rows.append(("votes", f"{standing['votes']['up']} up, {standing['votes']['down']} down"))
    return rows


async def published_by(mcp_url: str, account: str) -> list[Json]:
    """The names whose listed release an account published, as the node answers a search."""
    from capdex.net.node_client import NodeClient

    found: list[Json] = []
    asked: Json = {"query_string": "", "filters": {"publisher": account}, "limit": NODE_PAGE}
    async with NodeClient(mcp_url) as node:
        for _ in range(MAX_NODE_PAGES):
            answer = await node.call("search_capabilities", asked)
            hits = answer.get("list_of_results")
            for hit in hits if isinstance(hits, list) else []:
                if isinstance(hit, dict):
                    semver = hit.get("semver")
                    row = {"role": "publisher", "release_count": None, "latest": semver}
                    found.append({"name": name_of(hit), **row, "flags": flags(hit)})
            if not answer.get("next_cursor"):
                break
            asked["cursor"] = answer["next_cursor"]
    return found


async def held_by(registry: Registry, account: str) -> tuple[list[Json], int]:
    """The names that an account owns, maintains or is offered, and the block they were read at."""
    from publisher.registry.name_history import names_held

    held, block = await names_held(registry, account)
    found = []
    for one in held:
        state = one.state
        live = [Version.parse(x.semver) for x in state.releases if not x.yanked]
        highest = latest(live)
        found.append(
            describe(one.name, state)
            | {
                "role": one.role,
                "release_count": len(state.releases),
                "latest": None if highest is None else str(highest),
                "flags": _flags(state),
            }
        )
    return found, block


def _flags(state: NameState) -> list[str]:
    yanked = sum(x.yanked for x in state.releases)
    deprecated = sum(x.deprecated for x in state.releases)
    flags = ["deprecated"] if state.deprecated else []
    flags += [f"on offer to {state.pending_owner}"] if state.pending_owner else []
    flags += [f"{yanked} yanked"] if yanked else []
    return flags + ([f"{deprecated} deprecated"] if deprecated else [])
