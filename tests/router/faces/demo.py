"""A router over stdio with a few small tools: `python demo.py DIRECTORY [COUNT OF PACKAGES]`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from capdex_router.catalog.catalog import Catalog, Fixed
from capdex_router.catalog.search import Search
from capdex_router.faces.actions import Actions
from capdex_router.faces.server import serve_stdio
from capdex_router.home.audit_log import AuditLog
from capdex_router.invoke.invoke import Invoker
from capdex_router.invoke.results import Results
from capdex_router.model.capability import Capability, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.model.requests import HostRequest
from capdex_router.policy.grant_file import GrantFile
from tests.router.small_runtime import Echo, check, tool

HOST = HostRequest("POST", "https", "api.example.org", 443, "/say")
PAGE = HostRequest("GET", "https", "api.example.org", 443, "/page")


def capabilities(count: int) -> list[Capability]:
    owner = Owner("package", "did:nuwa:cap:note", "bb" * 32)
    many = [
        Capability(
            CapabilityRef(f"did:nuwa:cap:pack{number}", "1.0.0"), "skill", f"Pack {number}",
            f"does the thing number {number}", {"type": "object"},
            Owner("package", f"did:nuwa:cap:pack{number}", f"{number:064x}"), prompt="Do it.",
        )
        for number in range(count)
    ]  # fmt: skip
    return [
        tool("echo", Echo()),
        tool("destroy", Echo([HOST]), ToolHints()),
        tool("visit", Echo([PAGE])),
        Capability(
            CapabilityRef("did:nuwa:cap:note", "1.0.0"), "skill", "Note", "takes notes",
            {"type": "object"}, owner, prompt="You take notes.",
        ),
        *many,
    ]  # fmt: skip


def actions(home: Path, count: int = 0, *more: Capability) -> Actions:
    catalog = Catalog([Fixed([*capabilities(count), *more], domain="demo")])
    invoker = Invoker(
        catalog, rights=GrantFile(home / "grants.json"),
        audit=AuditLog(home / "audit.jsonl"), check=check,
    )  # fmt: skip
    return Actions(catalog, Search(catalog), invoker, Results(home / "results"))


if __name__ == "__main__":
    found = actions(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    asyncio.run(serve_stdio(found))
