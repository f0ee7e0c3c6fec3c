"""Show one call of `publish`: each step as it happens, the plan with its cost, the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from capdex.diff.semver_step import taken_step
from capdex.errors import CapdexError
from capdex.problems import Severity
from capdex.version import Version
from capdex_cli.publish.account import unlock
from capdex_cli.terminal.app import App
from capdex_cli.terminal.errors import exit_code, show
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.text import number_of, safe, short
from capdex_cli.views.problems import counted, full
from capdex_cli.views.progress import Progress, show_cost

if TYPE_CHECKING:
    from capdex_publisher.ethereum.transaction import Transaction
    from capdex_publisher.publish.plan import PublishPlan
    from capdex_publisher.publish.preflight import VersionComparison
    from capdex_publisher.publish.prepare import FileRead
    from capdex_publisher.publish.publish import Publication, PublishStep


class PublishProgress(Progress):
    """Shows the steps of one call. `codes` are the exit codes of files that are not published."""

    def __init__(self, app: App, where: str, *, many: bool, dry_run: bool) -> None:
        super().__init__(app, "mined", dry_run=dry_run)
        self._where = where  # the network and the account
        self._many = many
        self.codes: list[int] = []

    @override
    def __call__(self, step: PublishStep) -> None:
        """Show one step."""
        from capdex_publisher.publish.plan import PublishPlan
        from capdex_publisher.publish.preflight import VersionComparison
        from capdex_publisher.publish.prepare import FileRead, FileSigned
        from capdex_publisher.publish.publish import FileRejected

        match step:
            case FileRead():
                self._show_read(step)
            case FileSigned():
                if not self._many:
                    kind, label = ("ok", "signed") if step.written else ("plan", "would sign")
                    self._step(kind, label, safe(step.author))
            case FileRejected():
                self.reject(step.file, step.error)
            case VersionComparison():
                self._show_comparison(step)
            case PublishPlan():
                self._total = len(step.candidates)
                self._show_plan(step)
            case _:
                super().__call__(step)

    def show_title(self, title: str) -> None:
        """Show what is published, where and by which account."""
        self._output.say(f"  {self._output.err.style(safe(title), bold=True)}   {self._where}")

    def reject(self, name: str, error: CapdexError) -> None:
        """Show why a file is not published."""
        self._step("fail", "not published", safe(name))
        show(replace(error, details={"file": name} | (error.details or {})), self._output)
        self.codes.append(exit_code(error))

    async def confirm(self, plan: PublishPlan) -> bool:
        """Ask a person to agree; open the account's key while that person is still there."""
        count = sum(len(batch.candidates) for batch in plan.batches)
        what = "Publish?" if count == 1 else f"Publish {count} releases?"
        confirm(self._app, f"  {what} A version can be yanked but never replaced or deleted.")
        unlock(self._app)
        return True

    def _show_read(self, step: FileRead) -> None:
        name, manifest, problems = step.file.name, step.reading.manifest, step.problems
        if not self._many:
            self.show_title(f"{manifest.uri.name} {manifest.uri.version}" if manifest else name)
        for problem in problems:
            if problem.severity is not Severity.NOTE:
                for line in full(name, step.file.data, problem, self._output.err):
                    self._output.say(line)
        if manifest is None:
            return
        tools, triggers = len(manifest.tools), len(manifest.triggers)
        words = f"{number_of(tools, 'tool')}, {number_of(triggers, 'trigger')}, {counted(problems)}"
        if count := len(manifest.resources):
            words = f"{number_of(count, 'file')}, {words}"
        self._step("ok", "validated", f"{manifest.uri}   {words}" if self._many else words)

    def _show_comparison(self, step: VersionComparison) -> None:
        if step.latest is not None:
            words = f"{safe(step.cap_uri)}: {step.latest} is higher, and stays the latest"
            self._step("warn", "not latest", words)
        if step.unread:
            words = f"{safe(step.cap_uri)}: {step.previous} could not be read ({safe(step.unread)})"
            self._step("warn", "not compared", words)
        elif step.difference is not None and step.previous is not None:
            count = number_of(len(step.difference.changes), "change")
            version = Version.parse(step.cap_uri.rpartition("@")[2])
            required = step.difference.required_after(step.previous, version)
            words = f"{count} since {step.previous}; required: {required}"
            words += f", you chose: {taken_step(step.previous, version)}"
            self._step("ok", "compared", words)

    def _show_plan(self, plan: PublishPlan) -> None:
        for candidate in plan.candidates:
            if candidate.resumes is not None:
                words = f"{safe(candidate.uri)} was sent in tx {candidate.resumes.tx_hash}"
                self._step("plan", "resumed", words)
        if plan.transactions:
            new = dict.fromkeys(x.name for x in plan.candidates if x.to_send and x.claims_name)
            if new:
                self._output.say(f"    {'claims'.ljust(11)} {safe(', '.join(new))}")
            show_cost(self._app, plan.transactions, plan.fee_cap_wei, "   permanent: yes")
        if self._dry_run and plan.candidates:
            self._show_dry_run(plan)

    def _show_dry_run(self, plan: PublishPlan) -> None:
        """Show what would be sent, and that nothing was."""
        for name, commit in plan.commits.items():
            words = f"a commitment to {safe(name)}: {_brief(commit)}"
            self._step("plan", "would send", words)
        for batch in plan.batches:
            uris = ", ".join(safe(candidate.uri) for candidate in batch.candidates)
            self._step("plan", "would send", f"{uris}: {_brief(batch.transaction)}")
        count = sum(len(batch.candidates) for batch in plan.batches)
        would = f"publish {count} releases" if count > 1 else "publish"
        if not count:
            resumes = any(candidate.resumes for candidate in plan.candidates)
            would = "wait for what was sent" if resumes else "publish nothing: it is on chain"
        self._step("plan", "dry run", f"would {would}; nothing was sent")

    def show_results(self, results: Sequence[Publication]) -> None:
        """Show what was published before this call, and how to withdraw what is new."""
        for publication in results:
            if publication.already:
                where = f"in tx {publication.receipt.tx_hash}" if publication.receipt else "before"
                self._step("ok", "unchanged", f"{safe(publication.cap_uri)} was published {where}")
        new = [publication.cap_uri for publication in results if not publication.already]
        if new:  # a release can never be deleted
            release = safe(new[0]).rpartition(":")[2]
            it = "it" if len(new) == 1 else "one"
            words = f"to withdraw {it}: capdex yank {release}, to advise against {it}: "
            words += f"capdex deprecate {release} --message …"
            self._output.say(f"    {'later':<11} {words}")


def _brief(transaction: Transaction) -> str:
    data = transaction.data
    return f"to {transaction.to}, gas {transaction.gas}, data {short(data, 12, 6)} (all: --json)"
