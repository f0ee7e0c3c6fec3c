"""Checks of IPFS: the storage that packages are uploaded to, and the gateway."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from capdex.ipld.cid import Cid
from capdex.json import Json, object_of
from capdex.net.http import redact
from capdex_cli.doctor.check import DoctorCheck, Subject, fail, none, ok
from capdex_cli.doctor.machine import EMPTY_BYTES

MAX_BYTES: Final = 1 << 20  # of a reply
RAW_TYPE: Final = "application/vnd.ipld.raw"
EMPTY: Final = Cid.of(b"")  # the one block that every gateway can serve


async def ipfs(subject: Subject) -> DoctorCheck:
    """Examine the storage that packages are uploaded to."""
    from capdex.net.ipfs.kubo import Kubo
    from capdex.net.ipfs.open import open_storage

    spec = subject.network.ipfs
    if not spec:
        return none("ipfs is not set; publishing needs it")
    storage = open_storage(spec)
    try:
        if not isinstance(storage, Kubo):
            return _directory(spec.removeprefix("dir:"))
        url = storage.base_url
    finally:
        await storage.close()
    status, version = await _kubo_version(subject, url)
    if version is not None:
        _, disk = await _kubo(subject, f"{url}/api/v0/diag/sys")
        free = object_of(disk.get("diskinfo")).get("free_space")
        shown = f"Kubo {version} at {redact(url)}"
        return _with_room(shown, free if isinstance(free, int) else None)
    if (await _empty_block(subject, url))[1]:
        return fail(
            f"{redact(url)} is a gateway, which stores nothing",
            "name Kubo's RPC, which has a port of its own (5001), or a directory: --ipfs dir:PATH",
        )
    fix = "use a proxy that adds its token: capdex sends none" if status in (401, 403) else ""
    return fail(f"{redact(url)} answered {status}, and not as Kubo's RPC", fix)


async def _kubo_version(subject: Subject, url: str) -> tuple[int, str | None]:
    """Return the status, and the version if Kubo's RPC is there."""
    status, answer = await _kubo(subject, f"{url}/api/v0/version")
    return status, str(answer["Version"])[:40] if "Version" in answer else None


async def _kubo(subject: Subject, address: str) -> tuple[int, Json]:
    """Return the status, and the members of an answer with status 200."""
    reply = await subject.http.request("POST", address, max_bytes=MAX_BYTES)
    if reply.status == 200:
        with suppress(orjson.JSONDecodeError):
            return 200, object_of(orjson.loads(reply.body))
    return reply.status, {}


async def _empty_block(subject: Subject, url: str) -> tuple[int, bool]:
    """Return the status, and True if a gateway gives the empty block."""
    address, headers = f"{url}/ipfs/{EMPTY}?format=raw", {"Accept": RAW_TYPE}
    reply = await subject.http.request("GET", address, headers=headers, max_bytes=MAX_BYTES)
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    return reply.status, reply.status == 200 and kind == RAW_TYPE and EMPTY.matches(reply.body)


def _directory(text: str) -> DoctorCheck:
    path = Path(text).expanduser()
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return fail(f"{existing} cannot be written", "correct its permissions, or name another")
    shown = f"{path}{'' if path.exists() else ', made when first used'}"
    return _with_room(shown, shutil.disk_usage(existing).free)


def _with_room(shown: str, free: int | None) -> DoctorCheck:
    """Return that a storage with so many free bytes takes packages, or that its disk is full."""
    if free is not None and free < EMPTY_BYTES:
        result = f"{shown}: {free >> 20} MiB are left on its disk"
        return fail(result, "make room there, or name another storage with --ipfs")
    return ok(shown)


async def gateway(subject: Subject) -> DoctorCheck:
    """Read the empty block from the gateway, and compare its hash."""
    url = subject.network.gateway_url
    if not url:
        return none("gateway-url is not set")
    status, served = await _empty_block(subject, url)
    if served:
        return ok(f"{redact(url)} served a block, and its hash is right")
    if (await _kubo_version(subject, url))[1] is not None:
        return fail(
            f"{redact(url)} is Kubo's RPC, which is for its owner alone",
            "name Kubo's gateway, which has a port of its own (8080), or another trustless gateway",
        )
    if status in (404, 410, 412, 504):
        return ok(f"{redact(url)} answers, and does not have the empty block")
    return fail(f"{redact(url)} answered {status}, and not with the empty block")
