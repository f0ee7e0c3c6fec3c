"""`capdex secret`: the values of the secrets that capabilities name."""

from __future__ import annotations

import sys

import click

from capdex.errors import UsageError
from capdex.uri import CapabilityURI
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.prompt import NOTHING_WRITTEN, ask_secret
from capdex_cli.terminal.text import safe
from capdex_cli.views.installing import router_home


@command(
    "secret",
    examples=[
        "capdex secret weather api.example.org WEATHER_API_KEY",
        "capdex secret weather api.example.org WEATHER_API_KEY < key.txt",
        "capdex secret weather api.example.org WEATHER_API_KEY --remove",
    ],
)
@click.argument("capability")
@click.argument("host")
@click.argument("name")
@click.option("--remove", is_flag=True, help="Remove the secret.")
def secret_command(app: App, capability: str, host: str, name: str, remove: bool) -> None:
    """Store a secret that a capability names, for one host.

    The value is asked for without being shown, or read from stdin: it is never an argument. It is
    kept in the keyring of the desktop, else in a file for its user alone, and the router sends it
    to that host alone, for that capability alone. For basic authentication it is user:password.
    """
    from capdex.manifest.bindings.http_auth import is_secret_name
    from capdex_router.home.audit_log import AuditLog
    from capdex_router.policy.secrets import MAX_CHARS, Secrets

    if not is_secret_name(name):
        raise UsageError(
            "NAME is not the name of a secret: words of A-Z and 0-9 with _ between them",
            why="if it is the secret itself, it is in the history of your shell now",
            fix="give the name that the capability shows; the value is asked for",
        )
    of = CapabilityURI.loose(capability).name
    if not remove and ("/" in host or host.count(":") == 1):
        raise UsageError(
            f"{host[:80]!r} is not a host",
            why="a secret is sent to a host, on whatever port and path",
            fix="write the name of the host alone, such as api.example.org",
        )
    value = None
    if not remove and app.may_ask:
        question = f"{safe(name)} of {safe(of)} for {safe(host)}"
        value = ask_secret(question, undone=NOTHING_WRITTEN)
    elif not remove:
        value = sys.stdin.read(MAX_CHARS + 2).removesuffix("\n").removesuffix("\r")
    home = router_home()
    Secrets(home.secrets).set(of, host, name, value)
    with AuditLog(home.audit) as audit:
        audit.write("secret", capability=of, host=host.lower(), name=name, removed=remove)
    done = {"capability": of, "host": host.lower(), "name": name, "removed": remove}
    words = "removed" if remove else "stored"
    human = [f"{words}: {safe(name)} of {safe(of)}"]
    app.output.result("secret", done, human=human, plain=[name])
