"""The facts about a verified package that people agree to and the lock file keeps. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from capdex.errors import Code, InvalidInput
from capdex.manifest.bindings import PLACEHOLDER, contacts
from capdex.manifest.manifest import Manifest
from capdex.manifest.prompt_injection import lint_summary
from capdex.manifest.tools import BUILT_IN
from capdex.package import VerifiedPackage
from router.install.lockfile import MAX_ITEMS, MAX_TEXT_CHARS, Locked, changed_fields
from router.model.requests import AgentRequest, HostRequest, Request, ServiceRequest
from router.policy.permissions import target

Json = dict[str, Any]

INSTALL: Final = "install"  # the target of the grant by which a package is offered at all


def locked(package: VerifiedPackage, request: str, chain: Json, *, explicit: bool = True) -> Locked:
    """Return the entry of a package; raises InvalidInput TOO_LARGE for one that names too much."""
    manifest, announcement = package.manifest, package.announcement
    hosts = tuple(contacts(manifest.bindings))
    if len(hosts) > MAX_ITEMS or any(len(host) > MAX_TEXT_CHARS for host in hosts):
        raise InvalidInput(f"{manifest.uri} contacts more parties than fit a list", Code.TOO_LARGE)
    return Locked(
        name=manifest.uri.name,
        request=request,
        version=str(manifest.uri.version),
        cid=announcement.cid,
        sha256=announcement.sha256.hex(),
        verdict=str(package.verdict),
        signer=package.signer,
        chain=chain,
        permissions=tuple(manifest.permissions),
        hosts=hosts,
        tools=tools_digest(manifest),
        lint=lint_codes(package),
        explicit=explicit,
    )


def check(entry: Locked, package: VerifiedPackage) -> None:
    """Check that an entry says of a package what the package says.

    Raises InvalidInput LOCK_DRIFT. Lint codes are not compared: newer rules may find more.
    """
    found = locked(package, entry.request, entry.chain, explicit=entry.explicit)
    expected = replace(found, lint=entry.lint, extra=entry.extra)
    if differing := changed_fields(entry, expected):
        raise InvalidInput(
            f"the lock file does not say of {entry.name} what its package says",
            Code.LOCK_DRIFT,
            why=f"they differ in {', '.join(differing)}: the file was edited",
            fix=f"capdex remove {entry.name}, then install it again",
            details={"name": entry.name, "fields": list(differing)},
        )


def tools_digest(manifest: Manifest) -> str:
    """Return the sha256 (hex) of tools and bindings as they are written, as canonical JSON."""
    value = [manifest.document.get(key) for key in ("tools", "tool_bindings")]
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def lint_codes(package: VerifiedPackage) -> tuple[str, ...]:
    """Return the codes of the prompt-injection lint, sorted."""
    codes = lint_summary(str(problem.code) for problem in package.problems)["codes"]
    return tuple(str(code) for code in codes)


def lint_label(codes: tuple[str, ...]) -> str | None:
    """Return the gravest label of some codes: `medium`, `high`, or None."""
    label = lint_summary(codes)["label"]
    return None if label is None else str(label)


def rights(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """Return the targets (as `router.policy.permissions` writes them) of each tool.

    The name `` stands for the package itself: the state verbs that it declares. A party that an
    argument names is not among them: a person is asked when it is known.
    """
    found = {"": tuple(verb for verb in manifest.permissions if verb in BUILT_IN)}
    for tool, binding in manifest.bindings.items():
        request = _request(binding)
        if request is not None:
            found[tool] = (target(request),)
    return found


def granted_targets(manifest: Manifest) -> tuple[str, ...]:
    """Return the targets that a yes to the installation grants, each once."""
    targets = [INSTALL, *(target for found in rights(manifest).values() for target in found)]
    return tuple(dict.fromkeys(targets))


def _request(binding: Mapping[str, Any]) -> Request | None:
    match binding.get("type"):
        case "http_get" | "http_post":
            url = urlsplit(str(binding["url"]))
            if url.hostname is None:
                return None
            port = url.port or (80 if url.scheme == "http" else 443)
            return HostRequest("GET", url.scheme.lower(), url.hostname, port)
        case "mcp_service":
            return ServiceRequest(str(binding["service_uri"]), str(binding["mcp_action"]))
        case "nuwa_a2a":
            did = str(binding["target_did"])
            fixed = PLACEHOLDER.search(did) is None
            return AgentRequest(did, str(binding["service_method"])) if fixed else None
        case _:
            return None
