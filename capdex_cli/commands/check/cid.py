"""`capdex cid` and `capdex car`: the parts of a CID, and the file that a CID names in a CAR."""

from __future__ import annotations

from pathlib import Path

import click

from capdex.ipld.cid import Cid
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE_NAME, command
from capdex_cli.terminal.file_arguments import read, write
from capdex_cli.terminal.text import size


@command(
    "cid",
    examples=[
        "capdex cid weather.acp.yaml",
        "capdex cid bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
    ],
)
@click.argument("cid_or_file")
def cid_command(app: App, cid_or_file: str) -> None:
    """Take a CID apart, or make one of a file (- for stdin)."""
    is_file = cid_or_file == "-" or Path(cid_or_file).exists()
    cid = Cid.of(read(cid_or_file)) if is_file else Cid.parse(cid_or_file)
    value = {
        "cid": cid.text,
        "version": cid.version,
        "codec": cid.codec,
        "hash": "sha2-256",
        "digest": cid.digest.hex(),
    }
    human = [(f"{key}:", str(part)) for key, part in value.items()]
    app.output.result("cid", {"ok": True, **value}, human=human, plain=[cid.text])


@command(
    "car",
    examples=[
        "capdex car package.car --root bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "capdex car package.car --root bafybeih… --output weather.acp.yaml",
    ],
)
@click.argument("file", type=FILE_NAME, metavar="FILE")
@click.option("--root", required=True, metavar="CID", help="CID of the file.")
@click.option("-o", "--output", "target", metavar="FILE", help="Write the file; - for stdout.")
def car_command(app: App, file: str, root: str, target: str | None) -> None:
    """Read the file that a CID names out of a CAR.

    The roots in the header of the CAR are ignored. FILE may be - for stdin. Exit code: 0 the CAR
    has the file, 1 no CAR can have it, 3 another CAR may have it.
    """
    from capdex.ipld.car import MAX_CAR_BYTES, read_car

    cid = Cid.parse(root)
    data = read_car(read(file, MAX_CAR_BYTES), cid)
    if target is not None:
        write(target, data)
    if target == "-":
        return
    sha256 = Cid.of(data).digest.hex()
    app.output.result(
        "car",
        {"ok": True, "root": cid.text, "size_bytes": len(data), "sha256": sha256, "file": target},
        human=[f"{app.output.out.mark('ok')} {cid}  {size(len(data))}, every block hashed"],
        plain=[sha256],
    )
