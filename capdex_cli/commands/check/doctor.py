"""`capdex doctor`: run the checks of the installation, and say how to fix what is wrong."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from capdex import __version__
from capdex.errors import UsageError
from capdex_cli.publish.account import account_options
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.text import columns, safe

if TYPE_CHECKING:
    from capdex_cli.doctor.check import DoctorCheck


@command(
    "doctor", examples=["capdex doctor", "capdex doctor --network sepolia", "capdex doctor --json"]
)
@account_options
async def doctor_command(app: App) -> int:
    """Check the installation and say how to repair it.

    Nothing is changed, no passphrase is asked for, and nothing secret is shown.
    """
    checks = await _examine(app)
    healthy = all(check.status != "fail" for check in checks)
    app.output.result(
        "doctor",
        {"healthy": healthy, "checks": [asdict(check) for check in checks], "about": _about()},
        human=[*_table(app, checks), "", *_report(checks)],
        plain=[f"{check.name}={check.status}" for check in checks],
    )
    return 0 if healthy else 1


async def _examine(app: App) -> list[DoctorCheck]:
    """Run every check; those of the network wait for nothing but the RPC endpoint."""
    import asyncio

    from capdex.net.http import HttpClient
    from capdex_cli.config.settings import Settings
    from capdex_cli.doctor import machine, network
    from capdex_cli.doctor.check import Subject, run

    config_error = None
    try:
        settings = app.settings
    except UsageError as error:
        config_error, settings = error, Settings()
    async with HttpClient() as http:
        subject = Subject(app, settings, config_error, http)
        first, *others = network.CHECKS
        checks = [await run(row, subject) for row in (*machine.CHECKS, first)]
        return checks + await asyncio.gather(*(run(row, subject) for row in others))


def _about() -> dict[str, Any]:
    return {
        "capdex": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _table(app: App, checks: Sequence[DoctorCheck]) -> list[str]:
    rows = []
    for check in checks:
        dash = "–" if app.output.out.unicode else "-"
        sign = dash if check.status == "none" else app.output.out.mark(check.status)
        rows.append((sign, check.name, safe(check.result)))
        if check.fix:
            rows.append(("", "", app.output.out.style(f"→ {safe(check.fix)}", bold=True)))
    return columns(rows)


def _report(checks: Sequence[DoctorCheck]) -> list[str]:
    """Lines for a bug report, without the path of the home directory."""
    home = os.path.expanduser("~")  # noqa: PTH111 - it stays if no home directory is known
    about = _about()
    lines = [
        "For a bug report, paste from here on:",
        "",
        f"    capdex {about['capdex']}, Python {about['python']}, {about['system']}",
    ]
    for status in ("fail", "warn"):
        lines += [
            f"    {status} {check.name}: {safe(check.result.replace(home, '~'))}"
            for check in checks
            if check.status == status
        ]
    for status in ("ok", "none"):
        names = [check.name for check in checks if check.status == status]
        if names:
            lines.append(f"    {status} {', '.join(names)}")
    return lines
