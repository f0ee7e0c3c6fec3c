"""`capdex grant`: a person's yes outside of the agent's host, listed and taken back."""

from __future__ import annotations

import re
import time

import click

from capdex.errors import UsageError
from capdex.uri import PREFIX
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.text import safe
from capdex_cli.views.installing import router_home, show_proposal
from capdex_router.policy.grants import EVERY_TOOL, Grant

_DIGEST = re.compile(r"[0-9a-f]{64}")


@command(
    "grant",
    examples=[
        "capdex grant",
        f"capdex grant did:nuwa:cap:weather@1.0.0 host:api.example.org --digest {'ab' * 32}",
        "capdex grant did:nuwa:cap:weather --revoke",
    ],
)
@click.argument("capability", required=False)
@click.argument("targets", nargs=-1)
@click.option("--digest", metavar="SHA256", help="The content that the grant is for.")
@click.option("--days", type=click.IntRange(1, 3650), default=30, help="How long it lasts.")
@click.option(
    "--revoke", is_flag=True, help="Take back the targets named, or all of the tool or capability."
)
def grant_command(
    app: App,
    capability: str | None,
    targets: tuple[str, ...],
    digest: str | None,
    days: int,
    revoke: bool,
) -> None:
    """Agree to what a capability may do, list what was agreed to, or take it back.

    An agent whose host cannot ask its user shows the command to run here. A grant is for one
    content: an upgrade of the capability needs a new one. Without a tool it is for all its tools;
    --revoke then takes back those of all its tools, too.
    """
    from capdex_router.catalog.catalog import split
    from capdex_router.home.audit_log import AuditLog
    from capdex_router.policy.grant_file import GrantFile
    from capdex_router.policy.proposal import Access, Proposal

    home = router_home()
    grants = GrantFile(home.grants)
    if capability is None:
        now = time.time()
        _list(app, [x for x in grants.read().all if x.lasts(now)])
        return
    name, version = split(capability)
    name = name if ":" in name else f"{PREFIX}{name}"
    tool = name.partition("#")[2] or EVERY_TOOL
    if revoke:
        count = sum(grants.revoke(name, target) for target in targets or (None,))
        with AuditLog(home.audit) as audit:
            audit.write("revoke", capability_id=name, asked=list(targets))
        none = f"nothing was granted to {safe(name)}: capdex grant lists what is"
        human = [f"{count} taken back" if count else none]
        app.output.result("grant", {"revoked": count}, human=human, plain=[count])
        return
    if not targets or digest is None or _DIGEST.fullmatch(digest) is None:
        raise UsageError(
            "a grant needs its targets, and the sha256 of the content as --digest",
            fix="use the command that the router shows",
        )
    proposal = Proposal(
        "grant",
        f"Let {name} do this, without a further question?",
        name,
        version or "",
        digest,
        ("capdex", "grant", capability, *targets, "--digest", digest),
        tool=tool,
        accesses=tuple(Access(target, (_meaning(target),)) for target in targets),
        granted=targets,
        days=days,
    )
    show_proposal(app, proposal)
    confirm(app, "Grant this?")
    with AuditLog(home.audit) as audit:
        audit.write("grant", **proposal.audited(), agreed=True)
    given = proposal.grants(time.time())
    grants.grant(given)
    value = {"granted": list(targets), "until": given[0].until}
    app.output.result("grant", value, human=["granted"], plain=[name])


def _meaning(target: str) -> str:
    from capdex_router.policy.permissions import EFFECTS
    from capdex_router.policy.quoting import escaped

    if target == EFFECTS:
        return "effects: what may destroy or change something, whatever the input says"
    return escaped(target)


def _list(app: App, grants: list[Grant]) -> None:
    values = [
        {"capability": x.name, "target": x.target, "digest": x.digest, "until": x.until}
        for x in grants
    ]
    human = [(safe(x.name), safe(x.target), x.digest[:12]) for x in grants]
    plain = list(dict.fromkeys(x.name for x in grants))
    app.output.results("grant", values, human=human or ["nothing is granted"], plain=plain)
