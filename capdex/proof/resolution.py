"""Check a node's answer to `resolve` against its proof (P2, P15).

The checks cover the state on chain: the releases of a name, their digests and flags. The package
behind a digest is verified from its bytes (P6), not here.
"""

from __future__ import annotations

from capdex.errors import Code, InvalidInput, untrusted_text
from capdex.ipld.cid import Cid
from capdex.json import Json, object_of
from capdex.proof.document import Proof, ProofKind, refused
from capdex.proof.verify import Anchor, Proven, ProvenRelease, verify
from capdex.uri import PREFIX, CapabilityURI
from capdex.version import Version, VersionRange, latest, max_satisfying


def check_resolution(document: object, anchor: Anchor, uri: CapabilityURI, answer: Json) -> Proven:
    """Check that `uri` resolves on chain to the release in a node's `answer`; return the proof.

    Raises VerificationFailure BAD_PROOF if the proof is invalid or the chain has another release.
    A node that skips a release because its package was rejected is refused too, since a proof
    cannot show that reason: the error names the newer release, and the caller decides.
    """
    proven = _proven(document, anchor, uri)
    release = chosen(proven, uri)
    try:
        answered = f"{uri.name}@{Version.parse(untrusted_text(answer.get('semver')))}"
    except InvalidInput:
        raise refused("the answer's semver is no version") from None
    if release is None:
        raise refused(
            f"the answer is {answered}",
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
            f"the answer is {answered}, and the chain holds {release.version} for {uri}",
            f"the node hides {release.version}, or its package is not served (capdex show "
            f"{uri.name} says why)",
            f"if you mean the older one, ask for {answered}",
        )
    flags = object_of(answer.get("status"))
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


def check_refusal(document: object, anchor: Anchor, uri: CapabilityURI, code: Code) -> Proven:
    """Check that `uri` matches no release (NOT_FOUND) or only yanked ones (YANKED) on chain.

    Raises VerificationFailure BAD_PROOF.
    """
    proven = _proven(document, anchor, uri)
    release = chosen(proven, uri)
    if release is not None:
        raise refused(
            f"the answer is {code}, and the chain holds {uri.name}@{release.version}",
            "the node hides it, or is behind",
        )
    yanked = any(uri.takes(x.version) for x in proven.releases)
    if code is Code.YANKED and not yanked:
        raise refused(f"the answer is {code}, and the chain holds no such release")
    if code is Code.NOT_FOUND and yanked:
        raise refused(f"the answer is {code}, and the chain holds yanked releases")
    return proven


def chosen(proven: Proven, uri: CapabilityURI) -> ProvenRelease | None:
    """Return the release that `uri` resolves to on chain; an exact one even if yanked (P2)."""
    matching = [x for x in proven.releases if uri.takes(x.version)]
    if isinstance(uri.selector, Version):
        return matching[0] if matching else None
    versions = {x.version: x for x in matching if not x.yanked}
    if isinstance(uri.selector, VersionRange):
        highest = max_satisfying(versions, uri.selector)
    else:
        highest = latest(versions)
    return None if highest is None else versions[highest]


def _proven(document: object, anchor: Anchor, uri: CapabilityURI) -> Proven:
    """Verify a document of the name and of the kind that `uri` needs."""
    proof = Proof.parse(document)
    if proof.name != uri.name:
        raise refused(f"it is of {proof.name}, not of {uri.name}")
    exact = isinstance(uri.selector, Version) and proof.semver == str(uri.selector)
    if proof.kind is ProofKind.EXACT and not exact:
        raise refused(f"it is of the version {proof.semver} alone, which is not what {uri} asks")
    return verify(proof, anchor)
