#!/usr/bin/env python3
"""A mail program as CMP describes it: one binary, JSON for agents, colours for people.

The mailbox is `mailbox.json` in the working directory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

MAILBOX = Path("mailbox.json")


def main() -> int:
    parser = argparse.ArgumentParser("inbox", description="Gmail management")
    parser.add_argument("--version", action="version", version="inbox 1.0.0")
    commands = parser.add_subparsers(dest="command", required=True, title="commands")
    for name in ("summary", "analyze", "delete", "restore", "accounts"):
        subparser = commands.add_parser(name)
        subparser.add_argument("--json", action="store_true")
        if name == "analyze":
            subparser.add_argument("--count", type=int, default=20)
        if name == "delete":
            subparser.add_argument("--ids", required=True)
            subparser.add_argument("--confirm", action="store_true")
        if name == "restore":
            subparser.add_argument("--last", type=int, default=1)
    asked = parser.parse_args()
    mailbox = json.loads(MAILBOX.read_text())
    answer, code = run(asked, mailbox)
    MAILBOX.write_text(json.dumps(mailbox))
    if code:
        sys.stderr.write(f"{answer['error']}\n")
    elif os.environ.get("CMP_ROUTER") or not sys.stdout.isatty():
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        sys.stdout.write(f"\x1b[32m✓ {answer}\x1b[0m\n")
    return code


def run(asked: argparse.Namespace, mailbox: dict) -> tuple:
    emails, removed = mailbox["emails"], mailbox["removed"]
    if asked.command == "summary":
        return [{"name": "work", "unread": len(emails)}], 0
    if asked.command == "accounts":
        return [{"name": "work", "email": "work@example.org"}], 0
    if asked.command == "analyze":
        return emails[: asked.count], 0
    if asked.command == "delete":
        ids = asked.ids.split(",")
        if not asked.confirm:
            return {"error": "pass --confirm to delete"}, 2
        if unknown := [one for one in ids if one not in emails]:
            return {"error": f"no email {unknown[0]}"}, 1
        removed.append(ids)
        mailbox["emails"] = [one for one in emails if one not in ids]
        return {"deleted": len(ids), "ids": ids}, 0
    back = [one for ids in removed[-asked.last :] for one in ids]
    mailbox["removed"] = removed[: -asked.last]
    mailbox["emails"] = emails + back
    return {"restored": len(back), "ids": back}, 0


if __name__ == "__main__":
    sys.exit(main())
