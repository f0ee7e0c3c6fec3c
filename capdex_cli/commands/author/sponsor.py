"""`capdex sponsor`: publish without ether, and pay for the publications of others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from capdex.errors import Code, InvalidInput, UsageError
from capdex_cli.config.load import wei
from capdex_cli.config.settings import user_directories
from capdex_cli.node.options import allowed_host_option
from capdex_cli.publish.account import (
    account_options,
    author_options,
    fee_cap_wei,
    open_author,
    open_signer,
    spending_options,
    unlock,
)
from capdex_cli.publish.allowances import Allowed, allow_options
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE, FILE_NAME, Group, command, together
from capdex_cli.terminal.file_arguments import expand, package_file, read
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import safe, short
from capdex_cli.views.progress import not_served, open_registry, until_served

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from capdex_publisher.sponsor.request import SponsorRequest
    from capdex_publisher.sponsor.sponsor import Sponsor
    from capdex_service.limits.client_faults import ClientFaults
    from capdex_service.limits.options import ClientLimits

DEFAULT_PORT = 8767
SUFFIX = ".publication.json"
OTHER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # an account for the examples

signing_options = together(
    click.option(
        "--hours", type=click.IntRange(1, 24 * 365), default=24,
        help="How long the signature is valid.",
    ),
    allow_options,
    author_options,
    account_options,
)  # fmt: skip


@command(
    "sign",
    examples=[
        "capdex sponsor sign weather.acp.yaml",
        "capdex sponsor sign weather.acp.yaml --out ci/weather.publication.json --hours 72",
    ],
)
@click.argument("file", type=FILE_NAME, metavar="FILE")
@click.option("--out", type=FILE, metavar="FILE", help="Where the signed publication goes.")
@signing_options
async def sign_command(
    app: App, file: str, out: Path | None, hours: int, **allowed: Unpack[Allowed]
) -> None:
    """Sign the publication of a package, for a sponsor to send.

    Nothing is sent and nothing is paid. The file that is written holds the package and one
    signature of the publishing account: whoever has it can publish this release and nothing else,
    so a pipeline needs no key. A signature is used once: send it before you sign the next one.
    """
    from capdex.net.files import write_atomically

    if file == "-" and out is None:
        raise UsageError(
            "the signed publication needs a name", why="FILE is stdin", fix="add --out FILE"
        )
    request = await _sign(app, file, hours, **allowed)
    if request is None:
        return
    path = out or Path(file.removesuffix(".acp.yaml") + SUFFIX)
    document = json.dumps(request.to_json(), indent=2, ensure_ascii=False)
    write_atomically(path, f"{document}\n".encode())
    human = [f"next: capdex sponsor send {safe(path)} --to URL"]
    value = {
        "file": str(path),
        "publisher": request.publisher,
        "number": request.nonce,
        "deadline": request.deadline,
    }
    app.output.result("publication-request", value, human=human, plain=[str(path)])


@command(
    "send",
    examples=[
        "capdex sponsor send weather.publication.json --to https://sponsor.example.net",
        "capdex sponsor send weather.acp.yaml --to https://sponsor.example.net",
    ],
)
@click.argument("file", type=FILE_NAME, metavar="FILE")
@click.option("--to", required=True, metavar="URL", help="The sponsor.")
@signing_options
async def send_command(
    app: App, file: str, to: str, hours: int, **allowed: Unpack[Allowed]
) -> None:
    """Publish by a sponsor, which pays; wait until it is on chain and served.

    FILE is what `capdex sponsor sign` wrote, which needs no key and no chain endpoint here; or a
    package, which is signed first. Safe to stop and to run again: nothing is paid twice.
    """
    from capdex_publisher.progress import ignore, wait_served
    from capdex_publisher.sponsor.request import MAX_REQUEST_BYTES, SponsorRequest
    from capdex_publisher.sponsor.send import send_request

    if file.endswith(".json"):
        request: SponsorRequest | None = SponsorRequest.parse(read(file, MAX_REQUEST_BYTES))
    else:
        request = await _sign(app, file, hours, **allowed)
    if request is None:
        return
    with StatusLine(app.output) as line:
        answer = await send_request(request, to, on_wait=lambda words: line.show(safe(words)))
    uri, sha256 = str(answer["cap_uri"]), str(answer.get("sha256"))
    tx, already = answer.get("tx_hash"), answer.get("already")
    words = f"tx {safe(tx)}, says the sponsor, which pays"
    if already:
        words = f"{safe(uri)} is published" + (f": tx {safe(tx)}" if tx else "")
    app.output.step("ok", "unchanged" if already else "published", words)
    asked = until_served(app)
    served = await wait_served(None if asked is None else lambda: asked(uri, sha256), ignore)
    if asked is None:
        app.output.step("plan", "not awaited", "no node-url is set: only the sponsor says so")
    if served.after_s is not None:
        app.output.step("ok", "served", f"your node answers with it after {served.after_s:.1f} s")
    value = {**answer, "served_after_s": served.after_s}
    app.output.result("publication", value, human=[safe(uri)], plain=[str(answer.get("cid"))])
    if served.why:
        fix = "only the sponsor says that it is on chain: run the same command again, or ask it"
        raise replace(not_served(app, [uri], served.why), fix=fix)


@command(
    "serve",
    examples=[
        f"capdex sponsor serve --allow {OTHER} --budget 0.05",
        "capdex sponsor serve --allow-file authors.txt --budget 1 --host 0.0.0.0 "
        "--allowed-host sponsor.example.net",
    ],
)
@click.option("--allow", multiple=True, metavar="0x…", help="Pay for this account; repeatable.")
@click.option(
    "--allow-file", type=FILE, metavar="FILE", help="Pay for the accounts in it, one in a line."
)
@click.option("--budget", required=True, metavar="ETH", help="The most to spend in all, in ETH.")
@click.option(
    "--account-publications", type=click.IntRange(1), default=20,
    help="The most publications of one account in 24 hours, failed ones too.",
)  # fmt: skip
@click.option(
    "--account-budget", metavar="ETH",
    help="The most that the publications of one account cost in 24 hours, in ETH.",
)  # fmt: skip
@click.option("--ipfs", metavar="SPEC", help="dir:PATH or a Kubo RPC.  [env var: CAPDEX_IPFS]")
@click.option("--host", default="127.0.0.1", help="Address.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, help="Port; 0: any free one."
)
@allowed_host_option
@spending_options
def serve_command(
    app: App,
    allow: tuple[str, ...],
    allow_file: Path | None,
    budget: str,
    account_publications: int,
    account_budget: str | None,
    ipfs: str | None,
    host: str,
    port: int,
    allowed_host: tuple[str, ...],
) -> int:
    """Pay for the publications of the accounts that you allow, up to a budget.

    Each package is verified before anything is paid. What was spent, by reverted transactions too,
    is kept in the state directory; --fee-cap limits one publication. Runs until it is stopped.
    """
    from capdex_cli.terminal import logs
    from capdex_indexer.node.signals import run_until_stopped
    from capdex_publisher.sponsor.budget import Budget, Share

    allowed = _accounts(allow, allow_file)
    most = None if account_budget is None else wei(account_budget, "account-budget")
    budgets = wei(budget, "budget"), Share(account_publications, most)
    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    logs.set_up("logfmt" if app.output.err.tty else "json")

    async def serve() -> None:
        import asyncio

        import structlog

        from capdex_cli.node.server import listen, serve_app, url_of
        from capdex_publisher.publish.upload import Uploader
        from capdex_publisher.sponsor.sponsor import Sponsor
        from capdex_service.limits.client_faults import ClientFaults
        from capdex_service.limits.hosts import known_hosts
        from capdex_service.limits.options import ClientLimits

        log = structlog.get_logger(part="sponsor")
        storage = ipfs or app.settings.need_network("ipfs").ipfs
        names, faults, limits = known_hosts(host, allowed_host), ClientFaults(), ClientLimits()
        signer = await open_signer(app)
        unlock(app)  # while a person is there
        where = f"{network.chain}-{network.registry}-{signer.address}".lower()
        path = user_directories().state / "sponsor" / f"{where}.json"
        with listen(host, port) as listener, Budget.open(path, *budgets) as spent:
            async with open_registry(app) as registry, Uploader.open(storage) as uploader:
                cap = fee_cap_wei(app)
                sponsor = Sponsor(
                    registry, signer, uploader, spent, allowed=allowed, fee_cap_wei=cap
                )
                served = _app(sponsor, names, faults, limits)
                async with serve_app(served, listener, faults=faults, limits=limits):
                    log.info("listening", url=url_of(listener), **sponsor.to_json())
                    try:
                        await asyncio.Event().wait()
                    finally:
                        await sponsor.close()

    return run_until_stopped(serve())


sponsor_command = Group(
    "sponsor",
    commands=[sign_command, send_command, serve_command],
    help="Publish without ether: sign, and let a sponsor send and pay.",
    examples=[
        "capdex sponsor sign weather.acp.yaml",
        "capdex sponsor send weather.publication.json --to https://sponsor.example.net",
        f"capdex sponsor serve --allow {OTHER} --budget 0.05",
    ],
)


async def _sign(
    app: App, name: str, hours: int, **allowed: Unpack[Allowed]
) -> SponsorRequest | None:
    """Return the signed publication of a package; None, and say so, if it is published already."""
    from contextlib import AsyncExitStack

    from capdex.net.ipfs.gateway import Gateway
    from capdex.package import VerifiedPackage
    from capdex_publisher.progress import ignore
    from capdex_publisher.publish.prepare import Preparation
    from capdex_publisher.sponsor.send import sign_request

    signer = await open_signer(app)
    preparation = Preparation(
        account=signer.address,
        chain_id=app.settings.need_network("chain_id").chain,
        author=partial(open_author, app),
        write=True,
        on_step=ignore,
        allow_secret_like=allowed["allow_secret_like"],
    )
    package = await preparation.prepare(package_file(name))
    if not isinstance(package, VerifiedPackage):
        raise package.failure()
    network = app.settings.need_network()
    urls = dict.fromkeys(filter(None, (network.node_url, network.gateway_url)))
    async with AsyncExitStack() as parts:
        registry = await parts.enter_async_context(open_registry(app))
        sources = [await parts.enter_async_context(Gateway(url)) for url in urls]
        try:
            request = await sign_request(
                package,
                registry=registry,
                signer=signer,
                sources=sources,
                allow=allowed["allow"],
                valid_s=hours * 3600,
            )
        except InvalidInput as error:
            if error.code is not Code.ALREADY_DONE:
                raise
            app.output.step("ok", "unchanged", f"{safe(error.message)}, and nothing was signed")
            value = {"already": True, **(error.details or {})}
            plain = [value["cid"]]
            app.output.result("publication", value, human=[safe(value["cap_uri"])], plain=plain)
            return None
    words = f"{package.announcement.cap_uri} as {short(signer.address)}, valid for {hours} h"
    app.output.step("ok", "signed", safe(words))
    return request


def _app(
    sponsor: Sponsor, names: Sequence[str], faults: ClientFaults, limits: ClientLimits
) -> ASGIApp:
    """Return the ASGI application of a sponsor behind the checks of client, host and body."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware

    from capdex_publisher.sponsor.http import ABOUT_PUBLICATIONS, PLACES, routes
    from capdex_publisher.sponsor.request import MAX_REQUEST_BYTES
    from capdex_service.answers.errors import PUBLIC
    from capdex_service.http.problem import exception_handlers
    from capdex_service.limits.bodies import WholeBody
    from capdex_service.limits.clients import client_check
    from capdex_service.limits.hosts import HostCheck

    return Starlette(
        routes=routes(sponsor),
        middleware=[
            client_check(limits),
            Middleware(HostCheck, allowed=names),
            Middleware(WholeBody, faults=faults, max_bytes=MAX_REQUEST_BYTES),
        ],
        exception_handlers=exception_handlers(PLACES, PUBLIC | ABOUT_PUBLICATIONS),
    )


def _accounts(allow: Sequence[str], allow_file: Path | None) -> list[str]:
    """Return the accounts of the options (EIP-55); raises UsageError if there are none."""
    from capdex.encoding.abi import parse_address

    lines = [] if allow_file is None else expand([f"@{allow_file}"])
    written = [line.partition("#")[0].strip() for line in lines]
    accounts = [parse_address(account) for account in (*allow, *filter(None, written))]
    if not accounts:
        raise UsageError(
            "a sponsor must know for whom it pays",
            Code.CONFIG,
            why="else anybody could spend its budget",
            fix="name the accounts: --allow 0x…, or --allow-file FILE",
        )
    return accounts
