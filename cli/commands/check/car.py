"""`capdex car`: the file in a CAR, every block of it hashed."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from capdex.ipld.cid import Cid
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.file_arguments import read
from cli.terminal.text import size
from publisher.files import write_atomically


@command(
    "car",
    examples=[
        "capdex car package.car --root bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "capdex car package.car --root bafybeih… --output weather.acp.yaml",
    ],
)
@click.argument("file", metavar="FILE")
@click.option("--root", required=True, metavar="CID", help="The file that is wanted.")
@click.option("-o", "--output", "target", metavar="FILE", help="Write the file; - for stdout.")
def car_command(app: App, file: str, root: str, target: str | None) -> None:
    """Read the file that a CID names out of a CAR.

    What the CAR says of its roots means nothing. FILE may be - for stdin. Exit code: 0 the CAR
    holds the file, 1 no CAR can, 3 another one may.
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
