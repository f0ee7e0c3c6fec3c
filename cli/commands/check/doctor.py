"""`capdex doctor`: what works here, what does not, and how to mend it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capdex import __version__
from capdex.errors import UsageError
from cli.config.directories import user_directories
from cli.publish.account import (
    account_address,
    account_options,
    author_path,
    has_account,
    keystore_path,
)
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import columns, safe

if TYPE_CHECKING:
    from cli.doctor.check import Check

MARK = {"ok": "ok", "warn": "warn", "fail": "fail", "none": "plan"}


@command(
    "doctor",
    examples=["capdex doctor", "capdex doctor --network sepolia", "capdex doctor --json"],
)
@account_options
def doctor_command(app: App) -> int:
    """Check the installation and say how to mend what is wrong.

    Nothing is changed, no passphrase is asked for, and nothing secret is shown.
    """
    found = app.run(_examine(app))
    healthy = all(check.status != "fail" for check in found)
    app.output.result(
        "doctor",
        {"healthy": healthy, "checks": [asdict(check) for check in found], "about": _about()},
        human=lambda: [*_table(app, found), "", *_report(found)],
        plain=[f"{check.name}={check.status}" for check in found],
    )
    return 0 if healthy else 1


async def _examine(app: App) -> list[Check]:
    """Every check, side by side where they wait for somebody."""
    import asyncio

    from cli.config.load import unused_variables
    from cli.config.sources import find_project
    from cli.doctor import chain, machine, services
    from cli.doctor.check import bounded
    from cli.doctor.probe import Probe

    broken = None
    try:
        settings = app.settings
    except UsageError as error:
        from cli.config.settings import Settings

        broken, settings = error, Settings()
    network = settings.network
    files = [x for x in (find_project(Path.cwd()), user_directories().config_file) if x]
    here = [
        machine.python(),
        machine.node_js(os.environ.get("PATH")),
        machine.anvil(),
        machine.disk(user_directories().state),
        machine.configuration(broken, files, unused_variables(os.environ)),
    ]
    if broken is None:
        here.append(machine.key_files(_secrets(app), os.environ, settings.signer))
    async with Probe() as probe:
        known = broken is None and has_account(app)
        account = (lambda: account_address(app)) if known else None
        on_chain, *around = await asyncio.gather(
            chain.checks(probe, network, account),
            bounded("signer", services.signer(probe, settings.signer), fix="see that it runs"),
            bounded(
                "IPFS",
                services.ipfs(probe, network.ipfs if network else ""),
                fix="start it (ipfs daemon), or publish into a directory: --ipfs dir:PATH",
            ),
            bounded(
                "gateway",
                services.gateway(probe, network.gateway_url if network else ""),
                fix="name another trustless gateway: gateway-url",
            ),
            bounded(
                "node",
                services.node(probe, network),
                fix="start one (capdex node, capdex up), or name another with node-url",
            ),
        )
    return [*here, *on_chain, *around]


def _secrets(app: App) -> dict[str, tuple[Path, bool]]:
    """The files with secrets, and whether each was set rather than being the usual one."""
    settings = app.settings
    found = {
        "keystore": (keystore_path(app), bool(settings.keystore)),
        "author-key": (author_path(app), bool(settings.author_key)),
    }
    phrase = settings.passphrase_file
    return found | ({"passphrase-file": (phrase, True)} if phrase else {})


def _about() -> dict[str, Any]:
    return {
        "capdex": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _table(app: App, found: Sequence[Check]) -> list[str]:
    mark = app.output.out.mark
    rows = []
    for check in found:
        dash = "–" if app.output.out.unicode else "-"
        sign = dash if check.status == "none" else mark(MARK[check.status])
        rows.append((sign, check.name, safe(check.result)))
        if check.fix:
            rows.append(("", "", app.output.out.style(f"→ {safe(check.fix)}", bold=True)))
    return columns(rows)


def _report(found: Sequence[Check]) -> list[str]:
    """What to paste into a bug report: no address of a key file, nobody's home directory."""
    home = str(Path.home())
    about = _about()
    lines = [
        "For a bug report, paste from here on:",
        "",
        f"    capdex {about['capdex']}, Python {about['python']}, {about['system']}",
    ]
    for status in ("fail", "warn"):
        lines += [
            f"    {status} {check.name}: {safe(check.result.replace(home, '~'))}"
            for check in found
            if check.status == status
        ]
    for status in ("ok", "none"):
        names = [check.name for check in found if check.status == status]
        if names:
            lines.append(f"    {status} {', '.join(names)}")
    return lines
