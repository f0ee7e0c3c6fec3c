"""The mail program of the specification as a program to learn, and runtimes to learn it into."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from capdex_router.commands import adapters
from capdex_router.commands.learned import Learned
from capdex_router.runtime import Runtime, open_runtime

HERE = Path(__file__).parent
MANIFEST = {
    "domain": "email",
    "name": "inboxd",
    "summary": "Gmail management: triage, delete, restore",
    "version": "1.0.0",
}
INBOX = adapters.parse(json.dumps(MANIFEST).encode(), (HERE / "data/inboxd.json").read_bytes())


def write_inbox(folder: Path) -> Path:
    """Write the program, and its mailbox into `folder/work`."""
    shebang, rest = (HERE / "inbox.py").read_text().split("\n", 1)
    assert shebang == "#!/usr/bin/env python3"
    program = folder / "inbox"
    program.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{rest}")
    program.chmod(0o755)
    (folder / "work").mkdir(exist_ok=True)
    mailbox = {"emails": ["abc123", "def456", "ghi789"], "removed": []}
    (folder / "work/mailbox.json").write_text(json.dumps(mailbox))
    return program


BOXES = """#!/bin/sh
case "$1 $2" in
add*-h) echo 'usage: boxes add [options] <box> <thing>...
    -c, --count <n>   of each' >&2; exit 129;;
list*--help) printf 'Usage: boxes list [OPTIONS]\\n\\n  -a, --all   Also the empty ones\\n';;
list*) shift; printf '%s\\n' "$@";;
remove*) "$0" --help;;
--help*) echo 'Usage: boxes COMMAND

Commands:
  add      Put things into a box
  list     Show the boxes
  remove   Not there, and so the help of the program comes
  watch    Wait';;
MORE
*) echo "boxes: no manual entry" >&2; exit 16;;
esac
"""


def write_boxes(folder: Path, more: str = "") -> Path:
    """Write a program with subcommands, whose helps come on stdout or stderr, by both options."""
    program = folder / "boxes"
    program.write_text(BOXES.replace("MORE", more.replace("watch)", "watch*)")))
    program.chmod(0o755)
    return program


def emails(folder: Path) -> list[str]:
    """The mails that are left."""
    found: list[str] = json.loads((folder / "work/mailbox.json").read_text())["emails"]
    return found


async def study_inbox(runtime: Runtime, folder: Path) -> Learned:
    return await runtime.learning.study(
        str(folder / "inbox"), INBOX, writable=True, readable=[Path(sys.base_prefix)]
    )


@asynccontextmanager
async def learned_inbox(folder: Path) -> AsyncIterator[Runtime]:
    """A runtime whose person has agreed to learn the mail program."""
    write_inbox(folder)
    async with open_runtime(folder / "router", work=folder / "work") as runtime:
        runtime.learning.keep(await study_inbox(runtime, folder))
        yield runtime
