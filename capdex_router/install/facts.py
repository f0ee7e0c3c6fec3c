"""The facts about a verified package that people agree to and the lock file keeps. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from capdex.encoding.abi import raw_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import Code, InvalidInput, untrusted_text
from capdex.json import Json
from capdex.manifest.bindings.contacts import carried_secrets, contacts
from capdex.manifest.bindings.http_request import PLACEHOLDER, method_of
from capdex.manifest.manifest import Manifest, effects
from capdex.manifest.prompt_injection import lint_summary
from capdex.manifest.tools import BUILT_IN, Tool
from capdex.package import VerifiedPackage
from capdex.proof.document import Proof, refused
from capdex.proof.verify import Anchor, verify
from capdex_router.install.lockfile import MAX_ITEMS, MAX_TEXT_CHARS, Locked
from capdex_router.model.capability import ToolHints
from capdex_router.model.requests import (
    AgentRequest,
    HostRequest,
    Request,
    ServiceRequest,
    StateRequest,
)
from capdex_router.policy.permissions import asks_each_time
from capdex_router.policy.proposal import INSTALL, Access, accessed
from capdex_router.policy.quoting import quoted

_WRITTEN: Final = ("content", "parameter", "style", "explode")  # of a body or an argument


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
    derived = locked(package, entry.request, entry.chain, explicit=entry.explicit)
    expected = replace(derived, lint=entry.lint, folders=entry.folders, extra=entry.extra)
    ours, theirs = entry.to_json(), expected.to_json()
    if differing := [key for key in sorted(ours) if ours[key] != theirs[key]]:
        raise InvalidInput(
            f"the lock file does not say of {entry.name} what its package says",
            Code.LOCK_DRIFT,
            why=f"they differ in {', '.join(differing)}: the file was edited",
            fix=f"capdex remove {entry.name}, then install it again",
            details={"name": entry.name, "fields": differing},
        )


def check_proof(entry: Locked) -> None:
    """Check the storage proof that an entry keeps: it shows this release at its `block_hash`.

    Whether that block is of the chain, only somebody else than the file can say. Raises
    VerificationFailure BAD_PROOF; an entry without a proof passes.
    """
    chain = entry.chain
    if chain.get("proof") is None:
        return
    proof = Proof.parse(chain["proof"])
    contract = raw_address(untrusted_text(chain.get("contract")))
    proven = verify(proof, Anchor(chain["chain_id"], contract, proof.block_hash))
    shown = {(str(x.version), x.sha256.hex()) for x in proven.releases}
    hash_ = to_hex(proof.block_hash)
    if proof.name != entry.name or (entry.version, entry.sha256) not in shown:
        raise refused(f"the proof in the lock file is not of {entry.name} {entry.version}")
    if chain.get("block_hash") != hash_:
        raise refused("the proof in the lock file is of another block", f"it is of {hash_}")


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


def accesses(package: VerifiedPackage) -> tuple[Access, ...]:
    """Return all that an installed package may do: its tools by their bindings, then its verbs.

    A party that an argument names is shown, and is no right: a person is asked when it is known.
    """
    manifest = package.manifest
    shown = [Access(INSTALL, ("its tools and its prompt are offered to agents of this machine",))]
    for tool in manifest.tools:
        binding = manifest.bindings.get(tool.name)
        if binding is not None:
            shown.append(_access(manifest, tool, binding))
    for verb in manifest.permissions:
        scope = manifest.memory_scope or ""
        if verb in BUILT_IN:
            shown.append(accessed(StateRequest(verb, scope, manifest.schema_uri)))
        else:
            shown.append(
                Access("", (f"asks for the permission {quoted(verb)}, of no effect here",))
            )
    return tuple(shown)


def _access(manifest: Manifest, tool: Tool, binding: Json) -> Access:
    request = _request(binding)
    if request is None:
        text = quoted(json.dumps(binding, sort_keys=True))
        return Access("", (f"{tool.name}: has a binding that nothing here runs: {text}",))
    access = accessed(request, tool=tool.name)
    first, *lines = access.lines
    if asks_each_time("package", ToolHints(*effects(manifest, tool)), [request]):
        first += " (asks at each call)"
    if body := binding.get("body"):
        lines.append(f"{tool.name}:   with the body {', '.join(_written(body))}")
    for name, rule in sorted((binding.get("parameters") or {}).items()):
        named = f"{quoted(name)} in the {rule.get('in')} as {quoted(str(rule.get('name', name)))}"
        lines.append(f"{tool.name}:   with the argument {', '.join([named, *_written(rule)])}")
    by_argument = isinstance(request, AgentRequest) and PLACEHOLDER.search(request.did)
    return Access("" if by_argument else access.target, (first, *lines))


def _written(fields: Mapping[str, Any]) -> list[str]:
    parts = {x: fields[x] for x in _WRITTEN if fields.get(x) is not None}
    return [f"{x} {quoted(y) if isinstance(y, str) else json.dumps(y)}" for x, y in parts.items()]


def _request(binding: Mapping[str, Any]) -> Request | None:
    match binding.get("type"):
        case "http_get" | "http_post" | "http":
            url = urlsplit(str(binding["url"]))
            return HostRequest(
                method_of(binding),
                url.scheme.lower(),
                url.hostname or "",
                url.port or (80 if url.scheme == "http" else 443),
                url.path or "/",
                url.query,
                tuple(sorted((binding.get("headers") or {}).items())),
                secrets=carried_secrets(binding),
            )
        case "mcp_service":
            return ServiceRequest(str(binding["service_uri"]), str(binding["mcp_action"]))
        case "nuwa_a2a":
            return AgentRequest(str(binding["target_did"]), str(binding["service_method"]))
        case _:
            return None
