"""`capdex sign` and `verify`: the author's signature in a file, and its check by the chain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import CapdexError, InvalidInput
from capdex_cli.publish.account import (
    account_options,
    author_options,
    has_account,
    open_author,
    open_signer,
)
from capdex_cli.publish.allowances import files_option
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE_NAME, command
from capdex_cli.terminal.errors import NO, OK, worst
from capdex_cli.terminal.file_arguments import expand, package_file, read, telling, write
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import safe
from capdex_cli.views.progress import open_registry

if TYPE_CHECKING:
    from capdex.manifest.manifest import Manifest

FROM_CHAIN = ("event", "cid", "sha256", "id")  # checks that compare with the announcement


@command(
    "sign",
    examples=[
        "capdex sign weather.acp.yaml",
        "capdex sign weather.acp.yaml --author-key keys/author.json --publisher 0x8f3c…21aa",
        "capdex sign - < weather.acp.yaml > signed.acp.yaml",
    ],
)
@click.argument("packages", nargs=-1, required=True, type=FILE_NAME, metavar="FILE...")
@files_option
@click.option("--publisher", metavar="0x…", help="The account that will publish.")
@click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@author_options
@account_options
async def sign_command(
    app: App, packages: tuple[str, ...], files: Path | None, publisher: str | None, dry_run: bool
) -> int:
    """Sign a package.

    Sets metadata.author, metadata.publisher and metadata.signature in the file, and in resources
    what changed of its files; everything else stays byte for byte (CRLF becomes LF). From - the
    signed file goes to stdout. Any change after this, also of a file, needs a new signature.
    """
    from capdex.manifest.manifest import read as read_package
    from capdex_publisher.authoring.sign import sign_file

    chain_id = app.settings.need_network("chain_id").chain
    author = await open_author(app)
    if publisher is None and has_account(app):
        publisher = (await open_signer(app)).address
    values: list[dict[str, Any]] = []
    codes: list[int] = []
    for name in expand(packages):
        with telling(app, name, codes, InvalidInput):
            file = package_file(name, files)
            signed = await sign_file(
                file, author, chain_id=chain_id, publisher=publisher, write=not dry_run
            )
            if name == "-":
                write(name, b"" if dry_run else signed.data)
                continue
            manifest, changed = read_package(signed.data).require(), signed.data != file.data
            value = {"path": name, "cap_uri": str(manifest.uri), "author": manifest.author}
            values.append(
                value | {"publisher": manifest.publisher, "changed": changed, "dry_run": dry_run}
            )
            words = f"{manifest.author}{'' if changed else ' (unchanged)'}"
            if dry_run:
                words = "would be signed" if changed else "would not change"
            app.output.step("plan" if dry_run else "ok", "signed", f"{safe(name)}  {safe(words)}")
    if values:
        app.output.results("signature", values, plain=[value["path"] for value in values])
    return worst(codes)


@command(
    "verify",
    examples=[
        "capdex verify weather.acp.yaml",
        "capdex verify --offline weather.acp.yaml     # the signature alone",
        "capdex verify --homepage weather.acp.yaml    # and whether its host names it",
        "capdex verify --json - < weather.acp.yaml",
    ],
)
@click.argument("files", nargs=-1, required=True, type=FILE_NAME, metavar="FILE...")
@click.option("--offline", is_flag=True, help="Ask no chain: judge as its own author published it.")
@click.option(
    "--homepage", is_flag=True,
    help="Ask the host of the homepage, too, whether it names the capability and its publisher.",
)  # fmt: skip
def verify_command(app: App, files: tuple[str, ...], offline: bool, homepage: bool) -> int:
    """Verify files against the chain: digest, CID, signature, publisher.

    The release that a file says it is (metadata.id) is looked up in the registry, and the file is
    held against it exactly as a node or a router would. Exit code: 0 verified, 1 not. What the
    host of a homepage says is a label of this moment, and changes neither.
    """
    codes: list[int] = []
    values: list[dict[str, Any]] = []
    for name in expand(files):
        with telling(app, name, codes, CapdexError):
            values.append(app.run(_verify(app, name, offline, homepage)))
            codes.append(OK if values[-1]["verdict"] == "verified" else NO)
    human = [line for value in values for line in _lines(app.output.out, value)]
    plain = [value["verdict"] for value in values]
    app.output.results("verification", values, human=human, plain=plain)
    return worst(codes)


async def _verify(app: App, name: str, offline: bool, homepage: bool) -> dict[str, Any]:
    from capdex.manifest.manifest import read as read_package
    from capdex.package import RejectedPackage, judge
    from capdex_publisher.authoring.validate import self_announcement
    from capdex_publisher.registry.verified_get import announcement_of

    reading = read_package(read(name))
    manifest = reading.require()
    if offline:
        said = self_announcement(reading)
    else:
        async with open_registry(app) as registry:
            said, yanked = await announcement_of(registry, manifest.uri)
        if yanked:
            app.output.warn(f"{manifest.uri} is yanked")
    judged = judge(said, reading)
    rejected = judged if isinstance(judged, RejectedPackage) else None
    value: dict[str, Any] = {
        "file": name,
        "cap_uri": str(manifest.uri),
        "against": "itself" if offline else "chain",
        "verdict": str(judged.verdict),
        "reason": str(rejected.reason) if rejected else None,
        "message": rejected.message if rejected else "",
        "signer": judged.signer,
        "publisher": said.publisher,
        # Offline, a file is compared with its own claims: these checks would always hold.
        "checks": [x.to_json() for x in judged.checks if not (offline and x.name in FROM_CHAIN)],
    }
    if homepage:
        value["homepage"] = await _ask_homepage(manifest, said.chain_id, said.publisher)
    return value


async def _ask_homepage(manifest: Manifest, chain_id: int, publisher: str) -> dict[str, Any]:
    """Return what the host of a homepage says; private addresses are not contacted."""
    from yarl import URL

    from capdex_publisher.authoring.homepage import MAX_PROOF_BYTES, TIMEOUT_S, check_homepage
    from capdex_router.bindings.egress import Egress

    egress = Egress()

    async def fetch(url: str) -> tuple[int, bytes]:
        target = URL(url, encoded=True)
        limits: dict[str, Any] = {"timeout_s": TIMEOUT_S, "max_bytes": MAX_PROOF_BYTES}
        reply = await egress.fetch("GET", target, **limits)
        return reply.status, reply.body

    try:
        return await check_homepage(manifest, chain_id=chain_id, publisher=publisher, fetch=fetch)
    finally:
        await egress.close()


def _lines(stream: Stream, value: dict[str, Any]) -> Iterator[str]:
    held = value["verdict"] == "verified"
    yield f"{stream.mark('ok' if held else 'fail')} {value['cap_uri']}  {value['verdict']}"
    for check in value["checks"]:
        detail = safe(check["detail"])
        yield f"  {stream.mark('ok' if check['ok'] else 'fail')} {check['name'].ljust(12)} {detail}"
    if (label := value.get("homepage")) is not None:
        kind = {True: "ok", False: "warn"}.get(label["names_publisher"], "plan")
        words = f"{safe(label['detail'])}; checked by {label['checked_by']}, {label['checked_at']}"
        yield f"  {stream.mark(kind)} {'homepage'.ljust(12)} {words}"
    if value["against"] == "itself":
        yield "  the chain was not asked whether this was published"
    elif not held:
        yield f"  capdex explain {value['reason']}"
