"""`capdex publish`: a visible list of steps that may be interrupted and run again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import CapdexError
from cli.app import App
from cli.consent import confirm
from cli.delivering import open_delivery
from cli.errors import worst
from cli.files import expand
from cli.house import command
from cli.output import Format
from cli.packing import Packed, Packing
from cli.progress import Progress, open_registry, show_cost, until_served
from cli.text import safe, short
from cli.told import remember_told, tell_public
from cli.wallet import AUTHOR_KEY, account_address, fee_cap_wei, open_signer, spending_options

if TYPE_CHECKING:
    from publisher.candidate import Candidate
    from publisher.comparison import Comparison
    from publisher.delivery import Delivery
    from publisher.plan import Plan
    from publisher.registry import Registry

ALLOW = ("smaller-step", "widened-permission")  # the values of capdex.diff.Allowance


@command(
    "publish",
    examples=[
        "capdex publish weather.acp.yaml",
        "capdex publish weather.acp.yaml --dry-run",
        "capdex publish *.acp.yaml --yes",
        "CID=$(capdex publish weather.acp.yaml --yes --plain)",
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Check everything, show the transactions, send none.")
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(ALLOW),
    help="Publish although the version moves less than its changes owe.",
)
@click.option("--ipfs", metavar="SPEC", help="dir:PATH or a Kubo RPC.  [env var: CAPDEX_IPFS]")
@AUTHOR_KEY
@spending_options
def publish_command(
    app: App, files: tuple[str, ...], dry_run: bool, allow: tuple[str, ...], ipfs: str | None
) -> int:
    """Publish packages: check, sign, upload, announce, wait until served.

    Several files are uploaded side by side and announced together. A release can be yanked but
    never replaced or deleted. Safe to stop and to run again: what is done already is not done
    twice. A file that is not signed yet is signed in place. A new name is reserved first where
    the registry asks for that.
    """
    return app.run(_publish(app, expand(files), dry_run, frozenset(allow), ipfs))


async def _publish(
    app: App, names: Sequence[str], dry_run: bool, allow: frozenset[str], ipfs: str | None
) -> int:
    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    address = await account_address(app)
    title = safe(names[0]) if len(names) == 1 else f"{len(names)} packages"
    where = f"on {safe(network.name)} ({network.chain}) as {short(address)}"
    app.output.say(f"  {app.output.err.style(title, bold=True)}   {where}")
    packing = Packing(app, address, write=not dry_run)
    packed = await packing.pack(names)
    if not packed:
        return worst(packing.codes)
    async with open_registry(app) as registry, open_delivery(app, ipfs) as delivery:
        run = _Run(app, registry, delivery, packing)
        candidates = await run.examine(packed, address, allow)
        plan = await run.plan(candidates, address)
        ends = {} if dry_run else await run.carry_out(plan)
        if dry_run and plan.candidates:
            _say_dry_run(app, plan)
    values = [
        run.value(one, plan, dry_run) | ends.get(one.announcement.cap_uri, {})
        for one in plan.candidates
        if dry_run or one.announcement.cap_uri in ends
    ]
    _result(app, values, many=len(names) > 1)
    return worst([0, *packing.codes])


class _Run:
    """One call: the files by their candidates, and what became of each."""

    def __init__(self, app: App, registry: Registry, delivery: Delivery, packing: Packing) -> None:
        self._app = app
        self._registry = registry
        self._delivery = delivery
        self._packing = packing
        self._files: dict[str, str] = {}  # by capability URI
        self._compared: dict[str, Comparison] = {}

    async def examine(
        self, packed: Sequence[Packed], address: str, allow: frozenset[str]
    ) -> list[Candidate]:
        """What the registry takes and whose version moves far enough; the others are shown."""
        from publisher.candidate import Candidate, examine_all

        candidates = []
        found = await examine_all(
            [one.data for one in packed],
            registry=self._registry,
            publisher=address,
            fee_cap_wei=fee_cap_wei(self._app),
        )
        for file, one in zip(packed, found, strict=True):
            if isinstance(one, Candidate):
                candidates.append(one)
                self._files[one.announcement.cap_uri] = file.name
            else:
                self._packing.fail(file.name, one)
        return [one for one in candidates if await self._moves_enough(one, candidates, allow)]

    async def _moves_enough(
        self, one: Candidate, candidates: Sequence[Candidate], allow: frozenset[str]
    ) -> bool:
        """Compare with the release before; False: refused, and shown."""
        from capdex.diff import Allowance
        from publisher.comparison import compare_with_previous

        if not one.to_send:
            return True
        uri = one.announcement.cap_uri
        try:
            compared = await compare_with_previous(
                one,
                registry=self._registry,
                sources=self._delivery.sources,
                beside=candidates,
                allow=frozenset(map(Allowance, allow)),
            )
        except CapdexError as error:
            self._packing.fail(self._files[uri], error)
            return False
        self._compared[uri] = compared
        if compared.unread:
            self._app.output.step(
                "warn",
                "not compared",
                f"{safe(uri)}: {compared.previous} could not be read ({safe(compared.unread)})",
            )
        elif compared.difference is not None:
            count, step = len(compared.difference.changes), compared.difference.owed
            words = f"{count} changes since {compared.previous}, which owe a {step} step"
            self._app.output.step("ok", "compared", words)
        return True

    async def plan(self, candidates: Sequence[Candidate], address: str) -> Plan:
        """One plan for all, shown with what it costs."""
        from publisher import reservation
        from publisher.plan import make_plan

        new = dict.fromkeys(one.name for one in candidates if one.to_send and one.claims_name)
        reservations = await reservation.look(
            list(new), registry=self._registry, open_signer=partial(open_signer, self._app)
        )
        plan = await make_plan(
            candidates,
            registry=self._registry,
            publisher=address,
            reservations=reservations,
            fee_cap_wei=fee_cap_wei(self._app),
        )
        for uri, error in plan.refused.items():
            self._packing.fail(self._files[uri], error)
        if plan.transactions:
            if new:
                self._app.output.say(f"    {'claims'.ljust(11)} {safe(', '.join(new))}")
            tell_public(self._app)
            show_cost(self._app, plan.transactions, "   permanent: yes")
        return plan

    async def carry_out(self, plan: Plan) -> dict[str, dict[str, Any]]:
        """The part that changes something, once a person agreed; the outcomes by URI."""
        from publisher.outcome import Outcome
        from publisher.publish import carry_out

        if not plan.candidates:
            return {}
        if plan.transactions:
            count = sum(len(batch.candidates) for batch in plan.batches)
            what = "Publish?" if count == 1 else f"Publish {count} releases?"
            confirm(self._app, f"  {what} A version can be yanked but never replaced or deleted.")
            remember_told()
        digests = {x.announcement.cap_uri: x.fingerprint for x in plan.candidates}
        progress = Progress(self._app, "mined", total=len(plan.candidates))
        signer = await open_signer(self._app)
        async with progress.interruptible():
            results = await carry_out(
                plan,
                registry=self._registry,
                signer=signer,
                delivery=self._delivery,
                served=until_served(self._app, digests),
                on_step=progress,
            )
        ends = {}
        for one, end in zip(plan.candidates, results, strict=True):
            uri = one.announcement.cap_uri
            if not isinstance(end, Outcome):
                self._packing.fail(self._files[uri], end)
                continue
            ends[uri] = end.to_json()
            if end.already:
                where = f"in tx {end.tx_hash}" if end.tx_hash else "before"
                words = f"{safe(uri)} was published {where}"
                self._app.output.step("ok", "unchanged", words)
        return ends

    def value(self, one: Candidate, plan: Plan, dry_run: bool) -> dict[str, Any]:
        """The result of one package, before it was carried out."""
        network, said = self._app.settings.need_network(), one.announcement
        compared = self._compared.get(said.cap_uri)
        commit = plan.commits.get(one.name)
        transaction = next((x.transaction for x in plan.batches if one in x.candidates), None)
        return {
            "file": self._files[said.cap_uri],
            "dry_run": dry_run,
            "chain_id": network.chain_id,
            "registry": network.registry,
            "cap_uri": said.cap_uri,
            "cid": said.cid,
            "sha256": one.fingerprint,
            "already": one.already,
            "claims_name": one.claims_name,
            "previous": str(compared.previous) if compared and compared.previous else None,
            "commitment": commit.to_json() if commit and dry_run else None,
            "transaction": transaction.to_json() if transaction and dry_run else None,
            "page": f"{network.node_url}/c/{one.name}.json" if network.node_url else None,
        }


def _say_dry_run(app: App, plan: Plan) -> None:
    count = sum(len(batch.candidates) for batch in plan.batches)
    sent = [one for one in plan.candidates if one.resumes is not None]
    for name, commit in plan.commits.items():
        app.output.step("plan", "would send", f"a commitment to {safe(name)}: {_unsigned(commit)}")
    for batch in plan.batches:
        uris = ", ".join(safe(one.announcement.cap_uri) for one in batch.candidates)
        app.output.step("plan", "would send", f"{uris}: {_unsigned(batch.transaction)}")
    would = f"publish {count} releases" if count > 1 else "publish"
    if not count:
        would = "wait for what was sent before" if sent else "publish nothing: it is on chain"
    app.output.step("plan", "dry run", f"would {would}; nothing was sent")


def _unsigned(transaction: Any) -> str:
    data = transaction.data
    return f"to {transaction.to}, gas {transaction.gas}, data {short(data, 12, 6)} (all: --json)"


def _result(app: App, values: Sequence[dict[str, Any]], *, many: bool) -> None:
    def human() -> list[str]:
        lines = (line for one in values for line in (one["cap_uri"], one["page"]))
        return [safe(line) for line in lines if line]

    cids = [one["cid"] for one in values]
    if len(values) == 1 and not (many and app.output.format is Format.JSON):
        app.output.result("publication", values[0], human=human, plain=cids)
    elif values or many:
        app.output.results("publication", values, human=human, plain=cids)
