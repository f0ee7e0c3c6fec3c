"""Whether a node resolved a capability URI as the chain does, by its proof (P2, P15).

What is checked is what the chain keeps: which releases a name has, their digests and their flags.
Whether the package behind a digest is good is judged from its bytes (P6), not here.
"""

from __future__ import annotations

from typing import Any

from capdex.errors import Code
from capdex.ipld.cid import Cid
from capdex.proof.document import Kind, Proof, refused
from capdex.proof.verify import Anchor, Proven, ProvenRelease, verify
from capdex.semver import Version, VersionRange, latest, max_satisfying
from capdex.uri import PREFIX, CapabilityURI

Json = dict[str, Any]


def check_resolution(document: Any, anchor: Anchor, uri: CapabilityURI, answer: Json) -> Proven:
    """What is proven, if it is that `uri` means the release in a node's `answer`.

    Raises VerificationFailure BAD_PROOF: the proof does not hold, or the chain says otherwise. A
    node that skips a release because its package was rejected is refused, too: nothing here can
    tell its reason from a lie, so the newer release is named and the caller decides.
    """
    proven = _proven(document, anchor, uri)
    release = chosen(proven, uri)
    said = f"{uri.name}@{answer.get('semver')}"
    if release is None:
        raise refused(
            f"the answer is {said[:160]}",
            f"on chain {uri} means no release" + (" that is not yanked" if proven.releases else ""),
        )
    expected = {
        "cap_uri": f"{PREFIX}{uri.name}@{release.version}",
        "semver": str(release.version),
        "sha256": release.sha256.hex(),
        "ipfs_cid": str(Cid.raw(release.sha256)),
    }
    if answer.get("semver") != expected["semver"]:
        raise refused(
            f"the answer is {said[:160]}, and the chain holds {release.version} for {uri}",
            f"the node hides {release.version}, or its package is not served (capdex show "
            f"{uri.name} says why)",
            f"if you mean the older one, ask for {said[:160]}",
        )
    status = answer.get("status")
    flags = status if isinstance(status, dict) else {}
    expected_flags = {"yanked": release.yanked, "deprecated": release.deprecated}
    if proven.record is not None:
        expected_flags["name_deprecated"] = proven.record.deprecated
    for key, value in expected.items():
        if answer.get(key) != value:
            raise refused(f"the answer's {key} is not the chain's", f"on chain it is {value}")
    for key, flag in expected_flags.items():
        if flags.get(key) is not flag:
            raise refused(f"the answer's {key} flag is not the chain's", f"on chain it is {flag}")
    return proven


def check_refusal(document: Any, anchor: Anchor, uri: CapabilityURI, code: Code) -> Proven:
    """What is proven, if it is that `uri` means no release (NOT_FOUND), or yanked ones (YANKED).

    Raises VerificationFailure BAD_PROOF.
    """
    proven = _proven(document, anchor, uri)
    found = chosen(proven, uri)
    if found is not None:
        raise refused(
            f"the answer is {code}, and the chain holds {uri.name}@{found.version}",
            "the node hides it, or knows no better",
        )
    if code is Code.YANKED and not any(admits(uri, x) for x in proven.releases):
        raise refused(f"the answer is {code}, and the chain holds no such release")
    if code is Code.NOT_FOUND and any(admits(uri, x) for x in proven.releases):
        raise refused(f"the answer is {code}, and the chain holds yanked releases")
    return proven


def chosen(proven: Proven, uri: CapabilityURI) -> ProvenRelease | None:
    """The release that `uri` means by the chain alone: an exact one even if it is yanked (P2)."""
    able = [x for x in proven.releases if admits(uri, x)]
    if isinstance(uri.selector, Version):
        return able[0] if able else None
    versions = {x.version: x for x in able if not x.yanked}
    if isinstance(uri.selector, VersionRange):
        highest = max_satisfying(versions, uri.selector)
    else:
        highest = latest(versions)
    return None if highest is None else versions[highest]


def admits(uri: CapabilityURI, release: ProvenRelease) -> bool:
    """Whether the selector of `uri` takes a release, yanked or not."""
    selector = uri.selector
    if isinstance(selector, Version):
        return release.version == selector
    return selector is None or release.version in selector


def _proven(document: Any, anchor: Anchor, uri: CapabilityURI) -> Proven:
    """What the document proves, if it is of the name, and of the kind, that `uri` needs."""
    proof = Proof.parse(document)
    if proof.name != uri.name:
        raise refused(f"it is of {proof.name}, not of {uri.name}")
    exact = isinstance(uri.selector, Version) and proof.semver == str(uri.selector)
    if proof.kind is Kind.EXACT and not exact:
        raise refused(f"it is of the version {proof.semver} alone, which is not what {uri} asks")
    return verify(proof, anchor)
