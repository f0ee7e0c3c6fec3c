"""`capdex config`: each setting with where it came from. Secrets are files, so none is shown."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from cli.app import App
from cli.house import command
from cli.text import columns, safe


@command("config", examples=["capdex config", "capdex config --json"])
def config_command(app: App) -> None:
    """Show each setting and where it comes from."""
    from cli.config import NETWORK_KEYS

    settings = app.settings
    found: dict[str, object] = {"network": settings.network.name if settings.network else None}
    for key in NETWORK_KEYS:
        found[key] = getattr(settings.network, key.replace("-", "_"), None)
    for key in ("keystore", "author-key", "passphrase-file"):
        path = getattr(settings, key.replace("-", "_"))
        found[key] = None if path is None else str(path)
    found["signer"], found["signer-address"] = settings.signer, settings.signer_address
    found["fee-cap"] = f"{settings.fee_cap_wei / 10**18:f}".rstrip("0").rstrip(".")
    values = [
        {
            "key": key,
            "value": _shown(value) if value not in ("", None) else None,
            "origin": settings.origins.get(key, "built-in" if value else "unset"),
        }
        for key, value in found.items()
    ]
    app.output.results(
        "setting",
        values,
        human=lambda: columns(
            [
                (
                    str(x["key"]),
                    safe("-" if x["value"] is None else x["value"]),
                    app.output.out.dim(safe(x["origin"])),
                )
                for x in values
            ],
            indent=0,
        ),
        plain=[f"{x['key']}={'' if x['value'] is None else x['value']}" for x in values],
    )


def _shown(value: object) -> object:
    """A value without the password or key that a URL may carry."""
    if not isinstance(value, str) or "://" not in value:
        return value
    url = urlsplit(value)
    host = f"…@{url.netloc.rpartition('@')[2]}" if "@" in url.netloc else url.netloc
    # providers put their API keys into the path or the query
    path = url.path if len(url.path) < 24 else url.path[:8] + "…"
    return urlunsplit((url.scheme, host, path, "…" if url.query else "", ""))
