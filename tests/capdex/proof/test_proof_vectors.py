"""The vectors of proofs, recorded on a real chain: what holds, and what each tampering gives.

Made anew, after the documents were recorded (tests/e2e/test_proofs.py), by:
CAPDEX_GOLDEN=write pytest tests/capdex/proof/test_proof_vectors.py
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import Code, VerificationFailure
from capdex.proof.resolution import check_refusal, check_resolution
from capdex.proof.verify import Anchor, Proven
from capdex.uri import CapabilityURI

FOLDER = Path(__file__).parents[2] / "vectors" / "proofs"
WRITE = os.environ.get("CAPDEX_GOLDEN") == "write"  # before fixtures clean the environment
HELD = ("list", "exact", "yanked", "long", "absent", "free")
RECORDED: dict[str, Any] = json.loads((FOLDER / "documents.json").read_text("utf-8"))
CASES: dict[str, Any] = RECORDED["documents"]
ANCHOR = Anchor(
    RECORDED["chain_id"],
    bytes.fromhex(RECORDED["contract"][2:]),
    bytes.fromhex(RECORDED["block_hash"][2:]),
)


def check(case: Any, document: Any, code: str | None = None) -> Proven:
    """Check an answer, or the refusal with `code` (NOT_FOUND where there is no answer)."""
    wanted = CapabilityURI.parse(case["uri"])
    if code or case["answer"] is None:
        return check_refusal(document, ANCHOR, wanted, Code(code or "NOT_FOUND"))
    return check_resolution(document, ANCHOR, wanted, case["answer"])


def vectors(name: str) -> Any:
    """The vectors in a file, none before it is first written."""
    path = FOLDER / name
    return json.loads(path.read_text("utf-8")) if path.exists() else []


@pytest.mark.parametrize("name", HELD)
def test_what_was_recorded_holds(name: str) -> None:
    proven = check(CASES[name], CASES[name]["document"])
    assert proven.block.hash == ANCHOR.block_hash
    if name == "list":
        assert [str(x.version) for x in proven.releases if x.yanked] == ["1.2.0"]
        assert [str(x.version) for x in proven.releases if x.deprecated] == ["1.1.0"]
        assert len(proven.releases) == 5


@pytest.mark.parametrize("name", sorted(set(CASES) - set(HELD)))
def test_another_block_or_contract_does_not(name: str) -> None:
    with pytest.raises(VerificationFailure):
        check(CASES[name], CASES[name]["document"])


def test_every_way_to_tamper_is_among_the_vectors(tampering: Any) -> None:
    made = []
    for number, kind in enumerate(tampering.KINDS):
        for of in ("list", "exact", "absent"):
            case = tampering.Case(
                CASES[of]["document"],
                CASES["older"]["document"],
                CASES["elsewhere"]["document"],
                "note",
                random.Random(number),  # noqa: S311 - the same vectors on every run
            )
            if kind in tampering.kinds_for(case.document):
                patch = tampering.KINDS[kind](case)
                made.append({"tampering": kind, "of": of, "patch": patch})
    if WRITE:
        text = "[\n" + ",\n".join(json.dumps(x) for x in made) + "\n]\n"
        (FOLDER / "tampered.json").write_text(text, encoding="utf-8")
    assert made == vectors("tampered.json")


@pytest.mark.parametrize(
    "vector", vectors("tampered.json"), ids=lambda x: f"{x['tampering']}-{x['of']}"
)
def test_what_was_tampered_with_is_refused(tampering: Any, vector: Any) -> None:
    case = CASES[vector["of"]]
    document = tampering.apply(case["document"], vector["patch"])
    assert document != case["document"]
    with pytest.raises(VerificationFailure) as caught:
        check(case, document)
    assert caught.value.code is Code.BAD_PROOF


@pytest.mark.parametrize("vector", vectors("lies.json"), ids=lambda x: x["lie"])
def test_a_lie_beside_a_proof_that_holds_is_refused(vector: Any) -> None:
    case = CASES[vector["of"]]
    told = {**case, "uri": vector.get("uri", case["uri"])}
    if "answer" in vector:
        told["answer"] = (case["answer"] or {}) | vector["answer"]
    with pytest.raises(VerificationFailure) as caught:
        check(told, case["document"], vector.get("code"))
    assert caught.value.code is Code.BAD_PROOF
