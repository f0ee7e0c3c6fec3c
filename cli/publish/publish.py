"""One call of `capdex publish`: examined, planned, agreed to, carried out, each step shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from capdex.errors import CapdexError
from cli.publish.account import fee_cap_wei, open_signer
from cli.publish.prepare import Packed, Packing
from cli.terminal.app import App
from cli.terminal.prompt import confirm
from cli.terminal.text import safe, short
from cli.views.progress import Progress, show_cost, until_served

if TYPE_CHECKING:
    from publisher.publish.plan import Plan
    from publisher.publish.preflight import Candidate
    from publisher.publish.upload import Delivery
    from publisher.publish.version_check import Comparison
    from publisher.registry.registry import Registry


class Publishing:
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
        from publisher.publish.preflight import Candidate, examine_all

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
        from capdex.diff.diff import Allowance
        from publisher.publish.version_check import compare_with_previous

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
            many = f"{count} changes" if count != 1 else "1 change"
            words = f"{many} since {compared.previous}; the step owed: {step}"
            self._app.output.step("ok", "compared", words)
        return True

    async def plan(self, candidates: Sequence[Candidate], address: str) -> Plan:
        """One plan for all, shown with what it costs."""
        from publisher.commit_reveal import commit as reservation
        from publisher.publish.plan import make_plan

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
        for one in plan.candidates:
            if one.resumes is not None:
                words = f"{safe(one.announcement.cap_uri)} was sent in tx {one.resumes.tx_hash}"
                self._app.output.step("plan", "resumed", words)
        if plan.transactions:
            if new:
                self._app.output.say(f"    {'claims'.ljust(11)} {safe(', '.join(new))}")
            show_cost(self._app, plan.transactions, "   permanent: yes")
        return plan

    async def carry_out(self, plan: Plan) -> dict[str, dict[str, Any]]:
        """The part that changes something, once a person agreed; the outcomes by URI."""
        from publisher.progress import Outcome
        from publisher.publish.publish import carry_out

        if not plan.candidates:
            return {}
        if plan.transactions:
            count = sum(len(batch.candidates) for batch in plan.batches)
            what = "Publish?" if count == 1 else f"Publish {count} releases?"
            confirm(self._app, f"  {what} A version can be yanked but never replaced or deleted.")
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
        self._say_what_next([uri for uri, end in ends.items() if not end["already"]])
        return ends

    def _say_what_next(self, published: Sequence[str]) -> None:
        """Name what can be done about a release that should not be used: never deleting it."""
        if published:
            release = safe(published[0]).rpartition(":")[2]
            words = f"to withdraw it: capdex yank {release}, to advise against it: capdex deprecate"
            self._app.output.say(f"    {'later':<11} {words}")

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


def say_dry_run(app: App, plan: Plan) -> None:
    """What would be sent, and that nothing was."""
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
