"""Options of `capdex node` that limit its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from capdex_cli.node.options import F, environment_option

if TYPE_CHECKING:
    from capdex_service.limits.options import ClientLimits

# As in capdex_service.limits.options, which is imported only where a node starts; a test compares.
DEFAULTS: Final = {"max_connections": 4096, "client_timeout": 20, "keep_alive": 60, "rate": 200}
_SECONDS: Final = click.FloatRange(0.01, 3600)

_OPTIONS: Final = (
    environment_option(
        "--max-connections", type=click.IntRange(1, 65536),
        default=DEFAULTS["max_connections"], show_default=True, help="Open connections.",
    ),
    environment_option(
        "--max-connections-per-client", type=click.IntRange(1, 65536),
        help="Of these, from one address.  [default: an eighth]",
    ),
    environment_option(
        "--client-timeout", type=_SECONDS, default=DEFAULTS["client_timeout"], show_default=True,
        metavar="S", help="Seconds to send a head, to send a body, and to read an answer.",
    ),
    environment_option(
        "--keep-alive", type=_SECONDS, default=DEFAULTS["keep_alive"], show_default=True,
        metavar="S", help="Seconds between two requests on a connection.",
    ),
    environment_option(
        "--rate", type=click.FloatRange(0, 1e6), default=DEFAULTS["rate"], show_default=True,
        metavar="N", help="Requests a second of one client; 0: any.",
    ),
    environment_option("--limit-loopback", is_flag=True, help="Limit this machine's clients, too."),
    environment_option(
        "--trusted-proxy", multiple=True, metavar="ADDRESS",
        help="Believe X-Forwarded-For and -Proto of this address or network.",
    ),
    environment_option(
        "--token-file", type=click.Path(), metavar="FILE",
        help="Answer only with a bearer token of this file.",
    ),
)  # fmt: skip


def client_limit_options(function: F) -> F:
    """Add the options; `client_limits` takes their values."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def client_limits(
    *,
    max_connections: int,
    max_connections_per_client: int | None,
    client_timeout: float,
    keep_alive: float,
    rate: float,
    limit_loopback: bool,
    trusted_proxy: tuple[str, ...],
    token_file: str | None,
) -> ClientLimits:
    """Return the limits that the options set."""
    from capdex_service.limits.options import ClientLimits

    return ClientLimits(
        max_connections=max_connections,
        max_per_client=max_connections_per_client or 0,
        timeout_s=client_timeout,
        keep_alive_s=keep_alive,
        rate=rate,
        limit_loopback=limit_loopback,
        trusted_proxies=trusted_proxy,
        token_file=token_file,
    )
