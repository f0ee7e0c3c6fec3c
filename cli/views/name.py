"""A name on chain as rows of text: its owner, its maintainers, its deprecation, its votes."""

from __future__ import annotations

from typing import Any

from cli.terminal.text import safe

Json = dict[str, Any]


def rows_of(standing: Json) -> list[tuple[str, str]]:
    """Return the rows (label, text) of a name that `publisher.registry.audit` read."""
    owner = "none: renounced for good" if standing["renounced"] else str(standing["owner"])
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
