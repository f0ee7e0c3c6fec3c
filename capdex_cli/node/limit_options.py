"""Options of `capdex node` that limit its clients."""

from __future__ import annotations

from typing import Final

import click

from capdex_cli.node.options import environment_option
from capdex_cli.terminal.click_commands import NUMBER, SECONDS, together

# As in capdex_service.limits.options, which is imported only where a node starts; a test compares.
DEFAULTS: Final = {"max_connections": 4096, "timeout_s": 20, "keep_alive_s": 60, "rate": 200}

# Their names are those of `ClientLimits`, and None is its default.
client_limit_options = together(
    environment_option(
        "--max-connections", type=click.IntRange(1, 65536),
        default=DEFAULTS["max_connections"], help="Open connections.",
    ),
    environment_option(
        "--max-connections-per-client", "max_per_client", type=click.IntRange(1, 65536),
        help="Of these, from one address.  [default: an eighth]",
    ),
    environment_option(
        "--client-timeout", "timeout_s", type=SECONDS, default=DEFAULTS["timeout_s"], metavar="S",
        help="Seconds to send a head, to send a body, and to read an answer.",
    ),
    environment_option(
        "--keep-alive", "keep_alive_s", type=SECONDS, default=DEFAULTS["keep_alive_s"],
        metavar="S", help="Seconds between two requests on a connection.",
    ),
    environment_option(
        "--rate", type=NUMBER(0, 1e6), default=DEFAULTS["rate"], metavar="N",
        help="Requests a second of one client; 0: any.",
    ),
    environment_option("--limit-loopback", is_flag=True, help="Limit this machine's clients, too."),
    environment_option(
        "--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS",
        help="Believe X-Forwarded-For and -Proto of this address or network.",
    ),
    environment_option(
        "--token-file", type=click.Path(), metavar="FILE",
        help="Answer only with a bearer token of this file.",
    ),
)  # fmt: skip
