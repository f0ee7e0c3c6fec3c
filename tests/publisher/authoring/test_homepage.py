"""What a homepage's host says of a package: a label, whatever the host answers."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Unavailable
from capdex.manifest.manifest import read
from capdex.problems import Severity
from capdex_publisher.authoring.homepage import MAX_PROOF_BYTES, check_homepage
from capdex_publisher.authoring.scaffold import PackageKind, scaffold

PUBLISHER = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"
PROOF = "https://tea.dev/.well-known/capdex.json"


def reading(proof=PROOF, homepage="https://tea.dev/timer"):
    text = scaffold("tea-timer", description="Times tea.", homepage=homepage,
                    kind=PackageKind.PROMPT)  # fmt: skip
    if proof is not None:
        text = text.replace("metadata:\n", f"metadata:\n  proof: {json.dumps(proof)}\n", 1)
    return read(text.encode())


async def look(body, *, status=200, proof=PROOF):
    async def fetch(url):
        assert url == PROOF
        if isinstance(body, Exception):
            raise body
        return status, body

    manifest = reading(proof).require()
    return await check_homepage(manifest, chain_id=8453, publisher=PUBLISHER, fetch=fetch)


def listed(**names):
    return json.dumps({"capabilities": {key.replace("_", "-"): x for key, x in names.items()}})


async def test_a_host_that_names_the_publisher():
    body = listed(tea_timer=["eip155:1:0x" + "11" * 20, f"eip155:8453:{PUBLISHER.lower()}"])
    found = await look(body.encode())
    assert (found["names_publisher"], found["host"]) == (True, "tea.dev")
    assert (found["url"], found["checked_by"]) == (PROOF, "this command")
    assert datetime.fromisoformat(found["checked_at"]).utcoffset() is not None


@pytest.mark.parametrize(
    ("body", "names", "words"),
    [
        (listed(tea_timer=[f"eip155:1:{PUBLISHER}"]), False, "and not eip155:8453:"),
        (listed(tea_timer="eip155:8453:" + PUBLISHER), False, "and not"),
        (listed(other=[]), False, "does not name tea-timer"),
        ("[]", None, 'no member "capabilities"'),
        ("<html>", None, "not JSON"),
        ("[" * 100_000, None, "more than"),
        (" " * (MAX_PROOF_BYTES + 1), None, "more than"),
    ],
)
async def test_a_host_that_does_not(body, names, words):
    found = await look(body.encode())
    assert found["names_publisher"] is names
    assert words in found["detail"]


async def test_a_host_that_is_away_or_has_no_file():
    assert (await look(b"", status=404))["detail"] == "tea.dev answered with status 404"
    found = await look(Unavailable("tea.dev cannot be reached", why="refused"))
    why = "tea.dev cannot be reached: refused"
    assert (found["names_publisher"], found["detail"]) == (None, why)


async def test_a_package_without_a_proof_asks_nobody():
    found = await look(AssertionError(), proof=None)
    assert (found["names_publisher"], found["url"]) == (None, None)


@given(st.binary(max_size=300))
async def test_no_bytes_make_it_fail(body):
    assert (await look(body))["names_publisher"] in (None, False)


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (5, "not text"),
        ([], "not text"),
        ("http://tea.dev/.well-known/capdex.json", "https is required"),
        ("https://127.0.0.1/.well-known/capdex.json", "proof is passed over"),
        ("https://tea.dev/capdex.json", "/.well-known/"),
        ("https://tea.dev/.well-known/../~mallory/capdex.json", "may lead elsewhere"),
        ("https://tea.dev/.well-known/%2E%2e/~mallory/capdex.json", "may lead elsewhere"),
        ("https://other.dev/.well-known/capdex.json", "not that of homepage"),
        ("https://tea.dev:8443/.well-known/capdex.json", "not that of homepage"),
    ],
)
def test_another_value_is_passed_over_with_a_warning(proof, words):
    found = reading(proof)
    assert found.require().proof is None
    [problem] = [x for x in found.problems if x.path == "metadata.proof"]
    assert problem.severity is Severity.WARNING
    assert words in problem.message


def test_the_right_value_has_no_problem():
    found = reading()
    assert found.require().proof == PROOF
    assert not [x for x in found.problems if x.path == "metadata.proof"]
    assert reading(None).require().proof is None
