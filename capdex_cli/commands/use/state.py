"""`capdex state`: the objects that capabilities keep, listed, moved between machines, purged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capdex.uri import PREFIX, CapabilityURI
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE, Group, command
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.text import number_of, safe
from capdex_cli.views.installing import router_home

if TYPE_CHECKING:
    from capdex_router.state.store import ObjectStore

_capability = click.argument("capability")
_file = click.argument("file", type=FILE)


def _store() -> ObjectStore:
    from capdex_router.state.store import ObjectStore

    return ObjectStore(router_home().state)


def _owner(name: str) -> str:
    """Return the name that state belongs to: the URI of a package without its version."""
    return f"{PREFIX}{CapabilityURI.loose(name).name}"


@command("list", examples=["capdex state list"])
def list_command(app: App) -> None:
    """List what is kept: by capability, memory scope and schema."""
    with _store() as store:
        collections = store.collections()
    values = [
        {
            "capability": kept.space.owner,
            "memory_scope": kept.space.scope,
            "schema_uri": kept.schema_uri,
            "visibility": kept.visibility,
            "objects": kept.live,
            "deleted": kept.deleted,
            "expired": kept.expired,
        }
        for kept in collections
    ]
    human = [
        (
            *(safe(kept.space.owner), safe(kept.space.scope), safe(kept.schema_uri)),
            f"{number_of(kept.live, 'object')}, {kept.deleted} deleted, {kept.expired} expired",
        )
        for kept in collections
    ]
    plain = list(dict.fromkeys(kept.space.owner for kept in collections))
    app.output.results("state_list", values, human=human or ["nothing is kept"], plain=plain)


@command(
    "export",
    examples=[
        "capdex state export note note.state",
        "capdex state export note open.state --public",
    ],
)
@_capability
@_file
@click.option("--public", is_flag=True, help="Objects of a public schema alone, to pass on.")
def export_command(app: App, capability: str, file: Path, public: bool) -> None:
    """Write the objects of a capability to a file, for another machine of yours.

    The file is not encrypted. It has what fields held before, and, without --public, what was
    deleted but not purged.
    """
    from capdex_router.state.sync import export

    with _store() as store:
        count = export(store, _owner(capability), file, public=public)
    human = [number_of(count, "object")]
    app.output.result("state_export", {"objects": count}, human=human, plain=[file])


@command("import", examples=["capdex state import note.state"])
@_file
def import_command(app: App, file: Path) -> None:
    """Import the objects of a file, for a capability that has none here."""
    _merge(app, file, "state_import", empty=True)


@command("merge", examples=["capdex state merge note.state"])
@_file
def merge_command(app: App, file: Path) -> None:
    """Merge the objects of a file with those here; done on both sides, both have the same.

    All objects are merged, or none. An object that breaks its schema then is served as not valid.
    """
    _merge(app, file, "state_merge", empty=False)


def _merge(app: App, file: Path, what: str, *, empty: bool) -> None:
    from capdex_router.state.sync import judge, merge

    judge(file)
    with _store() as store:
        owner, merged = merge(store, file, empty=empty)
    human = [f"{safe(owner)}: {merged.new} new, {merged.changed} changed, {merged.same} as before"]
    value = {"capability": owner, **merged._asdict()}
    app.output.result(what, value, human=human, plain=[owner])


@command("purge", examples=["capdex state purge", "capdex state purge note"])
@click.argument("capability", required=False)
def purge_command(app: App, capability: str | None) -> None:
    """Erase for good what was deleted, and what is past its time to live."""
    owner = None if capability is None else _owner(capability)
    confirm(app, f"Erase what {'all capabilities' if owner is None else owner} deleted?")
    with _store() as store:
        count = store.purge(owner)
    human = [number_of(count, "object")]
    app.output.result("state_purge", {"objects": count}, human=human, plain=[count])


state_command = Group(
    "state",
    commands=[list_command, export_command, import_command, merge_command, purge_command],
    help="List, move and purge the objects that capabilities keep.",
    examples=["capdex state list", "capdex state export note note.state"],
)
