"""`capdex cid` and `capdex car`: the parts of a CID, and the file that a CID names in a CAR."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from capdex.ipld.cid import Cid
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.file_arguments import read
from cli.terminal.text import columns, size
from publisher.files import write_atomically

SHOWN = ("cid", "version", "codec", "hash", "digest")


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
        "ok": True,
        "cid": cid.text,
        "version": cid.version,
        "codec": cid.codec,
        "hash": "sha2-256",
        "digest": cid.digest.hex(),
    }
    app.output.result(
        "cid",
        value,
        human=lambda: columns([(f"{key}:", str(value[key])) for key in SHOWN], indent=0),
        plain=[cid.text],
    )


@command(
    "car",
    examples=[
        "capdex car package.car --root bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "capdex car package.car --root bafybeih… --output weather.acp.yaml",
    ],
)
@click.argument("file", metavar="FILE")
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
    if target == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if target is not None:
        write_atomically(Path(target), data, parents=False)
    raw = Cid.of(data)
    value = {
        "ok": True,
        "root": cid.text,
        "size_bytes": len(data),
        "sha256": raw.digest.hex(),
        "file": target,
    }
    app.output.result(
        "car",
        value,
        human=lambda: [f"{app.output.out.mark('ok')} {cid}  {size(len(data))}, every block hashed"],
        plain=[raw.digest.hex()],
    )
