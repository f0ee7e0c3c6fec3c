"""The `capdex` command and its sections. Imports nothing slow."""

from __future__ import annotations

import gc
import os
import sys
from typing import TextIO, cast

import click

from capdex import __version__
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import Entry, Program
from capdex_cli.terminal.output import LossyStream

# A section is a folder of `commands`; a command is in the module of its name or of _MODULES.
_MODULES = {
    **dict.fromkeys(("keygen", "account"), "keys"),
    **dict.fromkeys(("sign", "verify"), "signature"),
    **dict.fromkeys(("search", "resolve"), "query"),
    **dict.fromkeys(("yank", "unyank", "deprecate", "undeprecate"), "lifecycle"),
    **dict.fromkeys(("transfer", "maintainer", "renounce", "vote"), "names"),
    "car": "cid",
    "schema": "validate",
    "explain": "help",
    "completion": "version",
    "claim": "publish",
    "try": "trial",
    "mirror": "index",
    **dict.fromkeys(("upgrade", "remove", "sync", "installed", "audit"), "install"),
    "add-to": "add_to",
    "route": "call",
}
_COMMANDS = {
    "Author": {
        "init": "Start a capability package",
        "keygen": "Make a signing key (did:key)",
        "account": "Make and show the account that publishes",
        "validate": "Check packages and show what to correct",
        "schema": "Print the schema of package files, for editors",
        "try": "Show the request that a tool of a file makes",
        "sign": "Sign a package",
        "verify": "Verify files against the chain: digest, CID, signature, publisher",
        "claim": "Claim a name before anything is published under it",
        "publish": "Publish packages: check, sign, upload, announce, wait until served",
        "sponsor": "Publish without ether: sign, and let a sponsor send and pay",
    },
    "Find": {
        "search": "Find capabilities by what they do",
        "resolve": "Find the release that a URI or range means",
        "show": "Show a name: what it does, its tools, who owns it, and its releases",
        "list": "List the names that an account holds",
        "get": "Fetch a package and verify it against the chain",
        "diff": "Compare two releases by meaning and tell the required SemVer step",
    },
    "Use": {
        "install": "Install capabilities for the agents of this machine",
        "upgrade": "Upgrade installed capabilities to the newest versions",
        "remove": "Remove installed capabilities",
        "sync": "Bring this machine to what capdex.lock lists",
        "installed": "List what is installed",
        "audit": "Check the audit log of the router, and show its last lines",
        "route": "Tell which installed capability a message is for",
        "call": "Call a tool of an installed capability",
        "router": "Offer capabilities to an agent: an MCP server over stdin and stdout",
        "add-to": "Add the router to an agent's host, as Claude Code, Codex, Cursor or VS Code",
        "learn": "Make a command-line program a tool of the agent",
        "state": "List, move and purge the objects that capabilities keep",
        "grant": "Agree to what a capability may do",
        "secret": "Store a secret that a capability names, for one host",
    },
    "Own": {
        "yank": "Take a release out of search, latest and ranges",
        "unyank": "Put a yanked release back",
        "deprecate": "Advise against a release, or a name with all its releases",
        "undeprecate": "Take a deprecation back",
        "transfer": "Give a name to another account",
        "maintainer": "Manage who else may publish under a name",
        "renounce": "Give a name up for good",
        "vote": "Vote for or against a name, or take the vote back",
    },
    "Run": {
        "up": "Run a whole local network: chain, registry, IPFS and node",
        "node": "Run a node: index a registry, verify, answer over MCP",
        "mcp": "Answer MCP over stdin and stdout",
        "index": "Show the digests of an index",
        "snapshot": "Move an index to another machine in one file",
        "mirror": "Write an index as static files, for a web server or IPFS",
        "deploy": "Deploy the registry contract, or the votes on its names",
    },
    "Check": {
        "doctor": "Check the installation and say how to repair it",
        "explain": "Explain an error or reason code",
        "cid": "Take a CID apart, or make one of a file",
        "car": "Read the file that a CID names out of a CAR",
        "config": "Show each setting and where it comes from",
        "help": "Read about exit codes, the environment, ranges, steps, verdicts",
        "completion": "Print the completion script of a shell",
        "version": "Print the versions in use",
    },
}

_FIRST = (
    "capdex up                    # a whole local network, on this machine alone",
    "capdex init                  # start a capability package",
    "capdex search 'weather'      # find what others published",
)


@click.command(
    "capdex",
    cls=Program,
    entries={
        name: Entry(
            section, f"capdex_cli.commands.{section.lower()}.{_MODULES.get(name, name)}", purpose
        )
        for section, names in _COMMANDS.items()
        for name, purpose in names.items()
    },
    invoke_without_command=True,
    examples=_FIRST,
)
@click.version_option(__version__, message="capdex %(version)s", help="Print the version.")
@click.pass_context
def program(ctx: click.Context) -> None:
    """A registry for agent capabilities: published on chain, verified by everybody."""
    ctx.ensure_object(App)
    if ctx.invoked_subcommand is None:
        formatter = ctx.make_formatter()
        formatter.write_text(program.help or "")
        program.format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("capdex --help lists every command.")
        click.echo(formatter.getvalue().rstrip())


def main() -> None:
    """Run the console script."""
    # Imports make objects that live until the end: looking for cycles among them costs a tenth of
    # the time of `publish`.
    gc.set_threshold(100_000)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by what started it; the next file takes its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    sys.stderr = cast("TextIO", LossyStream(sys.stderr))  # a result counts without its messages
    # OpenBLAS ends its threads before a fork, and waits for ever for those that multiply: a node,
    # whose uvloop forks, stood still for good when it started a worker while it encoded a text.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    program.main()
