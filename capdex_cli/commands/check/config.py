"""`capdex config`: each setting with its source. Secrets are in files, so none is shown."""

from __future__ import annotations

from typing import Any

import click

from capdex_cli.config.load import network_names
from capdex_cli.config.settings import TEMPLATES, ChainTemplate
from capdex_cli.config.sources import NETWORK_KEYS, PATH_KEYS, configuration_files
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command, run_group
from capdex_cli.terminal.text import safe, without_secrets


@command("show", examples=["capdex config show", "capdex config show --network sepolia --json"])
@click.option("--origin/--no-origin", default=True, help="Show the source of each value.")
def show_command(app: App, origin: bool) -> None:
    """Show each setting and where it comes from."""
    _show(app, origin=origin)


@command("path", examples=["capdex config path", "capdex config path --plain"])
def path_command(app: App) -> None:
    """Show which files are read, in order of precedence."""
    files = configuration_files().items()
    values = [{"kind": kind, "path": str(path), "exists": path.is_file()} for kind, path in files]
    human = [
        (str(file["kind"]), safe(file["path"]), "" if file["exists"] else "does not exist")
        for file in values
    ]
    app.output.results("config-file", values, human=human, plain=[x["path"] for x in values])


@command("networks", examples=["capdex config networks"])
def networks_command(app: App) -> None:
    """List the networks that --network takes."""
    unknown = dict.fromkeys(ChainTemplate._fields)
    values: list[dict[str, Any]] = []
    for name, origin in network_names().items():
        template = TEMPLATES[name]._asdict() if name in TEMPLATES else unknown
        values.append({"name": name, **template, "origin": origin})
    keys = ("name", "chain_id", "currency", "explorer_url", "origin")
    human = [tuple(safe("-" if row[key] is None else row[key]) for key in keys) for row in values]
    app.output.results("network", values, human=human, plain=[x["name"] for x in values])


@run_group(
    "config",
    commands=[show_command, path_command, networks_command],
    examples=["capdex config", "capdex config networks", "capdex config path"],
)
def config_command(app: App) -> None:
    """Show each setting and where it comes from."""
    _show(app, origin=True)


def _show(app: App, *, origin: bool) -> None:
    settings = app.settings
    effective: dict[str, object] = {"network": settings.network.name if settings.network else None}
    for key in NETWORK_KEYS:
        effective[key] = getattr(settings.network, key.replace("-", "_"), None)
    for key in PATH_KEYS:
        path = getattr(settings, key.replace("-", "_"))
        effective[key] = None if path is None else str(path)
    effective["signer"], effective["signer-address"] = settings.signer, settings.signer_address
    whole, rest = divmod(settings.fee_cap_wei, 10**18)
    effective["fee-cap"] = f"{whole}.{rest:018}".rstrip("0").rstrip(".")
    values = [
        {
            "key": key,
            "value": without_secrets(value) if value not in ("", None) else None,
            "origin": settings.origins.get(key, "built-in" if value else "unset"),
        }
        for key, value in effective.items()
    ]
    human = []
    for setting in values:
        row = [str(setting["key"]), safe("-" if setting["value"] is None else setting["value"])]
        human.append([*row, app.output.out.dim(safe(setting["origin"]))] if origin else row)
    plain = [f"{x['key']}={'' if x['value'] is None else x['value']}" for x in values]
    app.output.results("setting", values, human=human, plain=plain)
