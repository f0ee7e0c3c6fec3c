"""A sponsor on a real Anvil: pays once, for whom it may, no more than it may."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import socket
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.registry.events import Announcement, Published
from capdex.uri import PREFIX
from capdex_publisher.authoring.files import describe, section
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.deploy import create2
from capdex_publisher.deploy.deploy import deploy
from capdex_publisher.ethereum.contract import all_events
from capdex_publisher.keys.signer import recover_typed_data
from capdex_publisher.publish.upload import Uploader
from capdex_publisher.registry.registry import Registry
from capdex_publisher.sponsor.budget import Budget, Share
from capdex_publisher.sponsor.http import routes
from capdex_publisher.sponsor.request import MAX_REQUEST_BYTES, SponsorRequest
from capdex_publisher.sponsor.send import send_request, sign_request
from capdex_publisher.sponsor.sponsor import Sponsor
from capdex_service.http.problem import EXCEPTION_HANDLERS, problem
from tests.publisher.ethereum.test_client import until
from tests.publisher.publish.test_publish import Killed

VECTORS = Path(__file__).parents[2] / "vectors/contract/signatures.json"
ETHER = 10**18


async def signed(registry, author, name="note", version="1.0.0", *, files="", **options):
    text = scaffold(name, version=version, description="Notes", kind=PackageKind.PROMPT) + files
    data = await sign(text.encode(), author, chain_id=31337)
    request = SponsorRequest(31337, registry.address, author.address, 0, 0, data)
    return await sign_request(request.verify(), registry=registry, signer=author, **options)


def body(request):
    return orjson.dumps(request.to_json())


@pytest.fixture
def author(local_chain):
    return local_chain.signer(wei=0)


@pytest.fixture
def open_sponsor(registry, signer, blocks, tmp_path, author):
    """Open the sponsor of one budget file; `author` alone is on its allow list."""

    def make(wei=ETHER, storage=blocks, **options):
        budget = Budget(tmp_path / "budget.json", wei)
        options = {"allowed": [author.address], **options}
        return Sponsor(registry, signer, Uploader(storage), budget, **options)

    return make


async def published(registry):
    return [x for x in await all_events(registry, []) if isinstance(x, Published)]


async def test_an_author_without_ether_publishes(
    registry, chain, open_sponsor, author, signer, blocks
):
    sponsor, before = open_sponsor(), await chain.balance(signer.address)
    release = await sponsor.publish(body(await signed(registry, author)))
    (event,) = await published(registry)
    assert event.announcement.publisher == author.address
    assert hashlib.sha256(await blocks.get(Cid.parse(release.cid))).hexdigest() == release.sha256
    assert release.cap_uri == event.announcement.cap_uri == "did:nuwa:cap:note@1.0.0"
    assert not release.already
    assert await chain.balance(author.address) == 0
    paid = before - await chain.balance(signer.address)
    assert paid == release.fee_wei == sponsor.budget.spent_wei
    assert sponsor.budget.left_wei == ETHER - paid


async def test_a_package_with_files_is_not_signed_for_a_sponsor(registry, author, tmp_path):
    (tmp_path / "a.md").write_text("A")
    files = "\n" + section([describe(tmp_path, "a.md")])
    with pytest.raises(InvalidInput, match="takes no files"):
        await signed(registry, author, files=files)


async def test_requests_at_once_and_again_are_paid_once(
    registry, chain, open_sponsor, author, signer
):
    request, sponsor = body(await signed(registry, author)), open_sponsor()
    first, second = await asyncio.gather(sponsor.publish(request), sponsor.publish(request))
    assert first == second
    left = await chain.balance(signer.address)
    assert (await sponsor.publish(request)).already
    assert (await open_sponsor().publish(request)).already  # after a restart
    assert await chain.balance(signer.address) == left
    assert len(await published(registry)) == 1


@pytest.mark.parametrize("mined", [True, False])
async def test_a_sponsor_that_was_killed_pays_once(
    registry, chain, local_chain, open_sponsor, author, signer, monkeypatch, mined
):
    request, before = body(await signed(registry, author)), await chain.balance(signer.address)
    send = chain.send_raw

    async def send_and_die(raw):
        await send(raw)
        raise Killed

    local_chain.call("evm_setAutomine", mined)
    monkeypatch.setattr(chain, "send_raw", send_and_die)
    with pytest.raises(Killed):
        await open_sponsor().publish(request)
    monkeypatch.undo()
    local_chain.call("evm_setAutomine", True)
    if not mined:
        local_chain.call("anvil_mine")
    restarted = open_sponsor()
    assert restarted.budget.left_wei < ETHER  # what was set aside stays counted
    release = await restarted.publish(request)
    assert release.cap_uri == "did:nuwa:cap:note@1.0.0"
    assert len(await published(registry)) == 1
    assert await chain.nonce(signer.address, "latest") == 1
    paid = before - await chain.balance(signer.address)
    assert (restarted.budget.spent_wei, restarted.budget.left_wei) == (paid, ETHER - paid)


@pytest.fixture
async def careful_registry(chain, local_chain, tmp_path):
    """A registry that asks for commitments."""
    wanted = create2.registry(31337, min_age_s=1, max_age_s=86_400)
    made, _ = await deploy(chain, local_chain.signer(), tmp_path / "aged", wanted)
    return Registry(chain, made.address, start_block=made.block_number)


async def test_a_commitment_that_was_mined_when_nobody_looked_is_counted(
    careful_registry, chain, signer, author, blocks, tmp_path, monkeypatch
):
    registry, path = careful_registry, tmp_path / "budget.json"
    request, before = body(await signed(registry, author)), await chain.balance(signer.address)
    send = chain.send_raw

    async def send_and_die(raw):
        await send(raw)
        raise Killed

    def opened():
        budget = Budget(path, ETHER)
        return Sponsor(registry, signer, Uploader(blocks), budget, allowed=[author.address])

    monkeypatch.setattr(chain, "send_raw", send_and_die)
    with pytest.raises(Killed):
        await opened().publish(request)
    monkeypatch.undo()
    restarted = opened()
    await restarted.publish(request)
    assert before - await chain.balance(signer.address) == restarted.budget.spent_wei


class SlowStore(BlockDirectory):
    """Three uploads that end together."""

    def __init__(self, path):
        super().__init__(path)
        self._all = asyncio.Barrier(3)

    async def put(self, data):
        await self._all.wait()
        return await super().put(data)


async def test_publications_at_once_do_not_go_over_the_budget(
    registry, local_chain, open_sponsor, tmp_path
):
    cap, authors = 10**16, [local_chain.signer(wei=0) for _ in range(3)]
    requests = [
        body(await signed(registry, author, f"note-{letter}"))
        for author, letter in zip(authors, "abc", strict=True)
    ]
    sponsor = open_sponsor(
        cap * 6 // 5,
        SlowStore(tmp_path / "slow"),
        allowed=[author.address for author in authors],
        fee_cap_wei=cap,
    )
    local_chain.call("evm_setAutomine", False)  # a block would give back what the first left over
    open_ = [asyncio.create_task(sponsor.publish(request)) for request in requests]
    await until(lambda: sum(each.done() for each in open_) == 2 and waiting(local_chain))
    local_chain.call("evm_setAutomine", True)
    local_chain.call("anvil_mine")
    ends = await asyncio.gather(*open_, return_exceptions=True)
    refused = [end for end in ends if isinstance(end, Refused)]
    assert [end.code for end in refused] == [Code.FEE_OVER_CAP] * 2
    assert len(await published(registry)) == 1


async def test_a_new_name_is_reserved_first_where_the_registry_asks(
    careful_registry, chain, signer, author, blocks, tmp_path
):
    registry = careful_registry
    budget = Budget(tmp_path / "budget.json", ETHER)
    sponsor = Sponsor(registry, signer, Uploader(blocks), budget, allowed=[author.address])
    before = await chain.balance(signer.address)
    release = await sponsor.publish(body(await signed(registry, author)))
    assert await registry.owner_of("note") == author.address
    assert await chain.nonce(signer.address, "latest") == 2  # the commitment and the publication
    paid = before - await chain.balance(signer.address)
    assert paid == release.fee_wei == budget.spent_wei


async def test_two_releases_of_an_account_in_order(registry, open_sponsor, author):
    sponsor = open_sponsor()
    await sponsor.publish(body(await signed(registry, author)))
    await sponsor.publish(body(await signed(registry, author, version="1.1.0")))
    assert len(await published(registry)) == 2


def waiting(local_chain):
    """The transactions that wait for a block, by account and nonce."""
    return local_chain.call("txpool_content")["pending"]


async def front_run(sponsor, request, local_chain):
    """Publish a request whose transaction somebody else copies and sends first; return the end."""
    local_chain.call("evm_setAutomine", False)
    publishing = asyncio.create_task(sponsor.publish(request))
    await until(lambda: publishing.done() or waiting(local_chain))
    if pool := waiting(local_chain):
        (ours,) = next(iter(pool.values())).values()
        copy = {
            "from": local_chain.call("eth_accounts")[5],
            "to": ours["to"],
            "data": ours["input"],
            "gas": hex(500_000),
            "maxFeePerGas": hex(200 * 10**9),
            "maxPriorityFeePerGas": hex(100 * 10**9),
        }
        local_chain.call("eth_sendTransaction", copy)
    local_chain.call("anvil_mine")
    local_chain.call("evm_setAutomine", True)
    return (await asyncio.gather(publishing, return_exceptions=True))[0]


async def test_every_fee_counts_when_somebody_else_is_first_until_the_budget_ends(
    registry, chain, local_chain, open_sponsor, author, signer
):
    limit = 10**15  # of some reverted transactions
    sponsor, before = (
        open_sponsor(wei=limit, fee_cap_wei=limit),
        await chain.balance(signer.address),
    )
    ends: list[Any] = []
    number = 0
    while not ends or not isinstance(ends[-1], Refused):
        number += 1
        assert number < 30
        request = body(await signed(registry, author, version=f"1.0.{number}"))
        ends.append(await front_run(sponsor, request, local_chain))
        paid = before - await chain.balance(signer.address)
        assert paid == sponsor.budget.spent_wei <= limit
    assert ends[-1].code is Code.FEE_OVER_CAP
    assert len(ends) > 2
    assert all(release.already for release in ends[:-1])


async def test_a_signature_that_waits_in_another_transaction_is_not_sent(
    registry, chain, local_chain, open_sponsor, author, signer, blocks, tmp_path
):
    request = await signed(registry, author)
    thief = local_chain.signer()
    other = Sponsor(
        registry, thief, Uploader(blocks), Budget(tmp_path / "other.json", ETHER),
        allowed=[author.address],
    )  # fmt: skip
    local_chain.call("evm_setAutomine", False)
    first = asyncio.create_task(other.publish(body(request)))
    await until(lambda: waiting(local_chain))
    sponsor, before = open_sponsor(), await chain.balance(signer.address)
    with pytest.raises(Unavailable, match="waits for its block") as refusal:
        await sponsor.publish(body(request))
    assert refusal.value.code is Code.RATE_LIMITED
    local_chain.call("evm_setAutomine", True)
    local_chain.call("anvil_mine")
    await first
    assert (await sponsor.publish(body(request))).already
    assert (await chain.balance(signer.address), sponsor.budget.spent_wei) == (before, 0)


async def test_an_account_has_a_share_that_reverted_publications_use_up_too(
    registry, local_chain, open_sponsor, author, tmp_path
):
    sponsor, now = open_sponsor(), [0.0]
    sponsor.budget = Budget(tmp_path / "share.json", ETHER, Share(publications=2), lambda: now[0])
    first = body(await signed(registry, author))
    await front_run(sponsor, first, local_chain)
    await sponsor.publish(body(await signed(registry, author, version="1.0.1")))
    third = body(await signed(registry, author, version="1.0.2"))
    with pytest.raises(Unavailable, match="share") as refusal:
        await sponsor.publish(third)
    assert refusal.value.code is Code.RATE_LIMITED
    assert (await sponsor.publish(first)).already  # what is on chain is found
    now[0] = 86_401.0
    assert not (await sponsor.publish(third)).already


async def test_each_try_of_one_request_that_costs_something_counts_to_its_account(
    registry, local_chain, open_sponsor, author, tmp_path
):
    # The account accepts a signature when it is asked for nothing, and burns all gas when paid.
    code = "0x3a601257631626ba7e60e01b5f5260205ff35b601256"
    local_chain.call("anvil_setCode", author.address, code)
    request = dataclasses.replace(await signed(registry, author), signature=bytes(65))
    sponsor = open_sponsor()
    sponsor.budget = Budget(tmp_path / "share.json", ETHER, Share(publications=2))
    for _ in range(2):
        with pytest.raises(InvalidInput) as failed:
            await sponsor.publish(body(request))
        assert failed.value.code is Code.REVERTED
    spent = sponsor.budget.spent_wei
    with pytest.raises(Unavailable, match="share"):
        await sponsor.publish(body(request))
    assert sponsor.budget.spent_wei == spent > 0


async def test_the_fees_of_an_account_have_a_bound(registry, open_sponsor, author, tmp_path):
    sponsor = open_sponsor()
    sponsor.budget = Budget(tmp_path / "share.json", ETHER, Share(wei=1))
    await sponsor.publish(body(await signed(registry, author)))
    with pytest.raises(Unavailable, match="share"):
        await sponsor.publish(body(await signed(registry, author, version="1.0.1")))
    again = Budget(tmp_path / "share.json", ETHER, Share(wei=1))  # also after a restart
    with pytest.raises(Unavailable):
        again.check_account(f"{author.address}-other")


async def test_what_reverted_before_a_crash_counts(
    registry, chain, local_chain, open_sponsor, author, signer, monkeypatch
):
    request = body(await signed(registry, author))
    send = chain.send_raw

    async def send_and_die(raw):
        await send(raw)
        raise Killed

    before = await chain.balance(signer.address)
    monkeypatch.setattr(chain, "send_raw", send_and_die)
    assert isinstance(await front_run(open_sponsor(), request, local_chain), Killed)
    monkeypatch.undo()
    restarted = open_sponsor()
    assert (await restarted.publish(request)).already
    assert 0 < before - await chain.balance(signer.address) == restarted.budget.spent_wei
    assert restarted.budget.left_wei == ETHER - restarted.budget.spent_wei


def foreign_chain(request):
    return dataclasses.replace(request, chain_id=1)


def foreign_registry(request):
    return dataclasses.replace(request, registry="0x" + "11" * 20)


def other_signature(request):
    return dataclasses.replace(request, signature=bytes(64) + b"\x1b")


def other_deadline(request):
    return dataclasses.replace(request, deadline=request.deadline + 1)


def short_signature(request):
    return dataclasses.replace(request, signature=b"\x01")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (foreign_chain, Code.WRONG_CHAIN),
        (foreign_registry, Code.WRONG_CHAIN),
        (other_signature, Code.PERMISSION_DENIED),
        (other_deadline, Code.PERMISSION_DENIED),
        (short_signature, Code.PERMISSION_DENIED),
    ],
)
async def test_what_is_not_signed_for_it_is_refused(registry, open_sponsor, author, change, code):
    sponsor = open_sponsor()
    with pytest.raises(Refused) as refusal:
        await sponsor.publish(body(change(await signed(registry, author))))
    assert refusal.value.code is code
    assert (await published(registry), sponsor.budget.left_wei) == ([], ETHER)


async def test_a_package_is_judged_after_its_signature(registry, open_sponsor, author):
    request = await signed(registry, author)
    forged = dataclasses.replace(request, package=request.package + b"\nschema: 1\n")
    with pytest.raises(Refused, match="the signature is not one of"):
        await open_sponsor().publish(body(forged))


async def test_a_key_whose_account_has_code_is_told_why_its_signature_does_not_count(
    registry, open_sponsor, author, local_chain
):
    delegation = "0xef0100" + registry.address[2:]  # EIP-7702: to code without ERC-1271
    local_chain.call("anvil_setCode", author.address, delegation)
    sponsor = open_sponsor()
    with pytest.raises(Refused, match="the signature is not one of") as refusal:
        await sponsor.publish(body(await signed(registry, author)))
    assert refusal.value.code is Code.PERMISSION_DENIED
    assert "EIP-7702" in refusal.value.why
    assert (await published(registry), sponsor.budget.left_wei) == ([], ETHER)


async def test_an_account_that_is_not_allowed(registry, open_sponsor, author):
    sponsor = open_sponsor(allowed=[])
    with pytest.raises(Refused, match="does not pay for") as refusal:
        await sponsor.publish(body(await signed(registry, author)))
    assert refusal.value.code is Code.PERMISSION_DENIED
    assert "--allow" in refusal.value.fix


async def test_over_the_budget_nothing_is_sent(registry, chain, open_sponsor, author, signer):
    sponsor, before = open_sponsor(wei=1000), await chain.balance(signer.address)
    with pytest.raises(Refused, match="budget") as refusal:
        await sponsor.publish(body(await signed(registry, author)))
    assert refusal.value.code is Code.FEE_OVER_CAP
    assert await chain.balance(signer.address) == before
    assert sponsor.budget.left_wei == 1000


async def test_a_signature_of_an_earlier_number(registry, open_sponsor, author):
    sponsor = open_sponsor()
    late = await signed(registry, author, version="2.0.0")
    await sponsor.publish(body(await signed(registry, author)))
    with pytest.raises(Refused, match="the next one is 1"):
        await sponsor.publish(body(late))


async def test_a_signature_that_is_no_longer_valid(registry, open_sponsor, author):
    with pytest.raises(Refused, match="no longer valid"):
        await open_sponsor().publish(body(await signed(registry, author, valid_s=-(10**9))))


async def test_a_package_with_another_byte_is_refused(registry, open_sponsor, author):
    request = await signed(registry, author)
    changed = dataclasses.replace(request, package=request.package + b"# more\n")
    signature = await author.sign_typed_data(changed.document(changed.announcement()))
    changed = dataclasses.replace(changed, signature=signature)
    with pytest.raises(CapdexError) as refusal:
        await open_sponsor().publish(body(changed))
    assert refusal.value.code is Code.UNVERIFIED


class HeldStorage(BlockDirectory):
    """A storage that takes nothing until it is released."""

    def __init__(self, path):
        super().__init__(path)
        self.released = asyncio.Event()

    async def put(self, data):
        await self.released.wait()
        return await super().put(data)


async def test_accounts_that_are_contracts_do_not_open_more_than_others(
    registry, open_sponsor, author, local_chain, monkeypatch, tmp_path
):
    monkeypatch.setattr("capdex_publisher.sponsor.sponsor.MAX_OPEN", 1)
    # The account accepts every signature: it returns 0x1626ba7e, ERC-1271's answer.
    local_chain.call("anvil_setCode", author.address, "0x631626ba7e60e01b5f5260205ff3")
    storage = HeldStorage(tmp_path / "held")
    sponsor = open_sponsor(storage=storage)
    requests = [await signed(registry, author, version=f"1.0.{number}") for number in range(4)]
    other = [body(dataclasses.replace(one, signature=bytes(65))) for one in requests]
    ends = asyncio.as_completed(map(sponsor.publish, other))
    # The first one is open until its package is stored, so the others have to be refused.
    for _ in range(3):
        with pytest.raises(Unavailable) as refusal:
            await next(ends)
        assert refusal.value.code is Code.RATE_LIMITED
    storage.released.set()
    assert not (await next(ends)).already


async def test_a_request_over_the_limit(open_sponsor):
    with pytest.raises(InvalidInput) as refusal:
        await open_sponsor().publish(b" " * (MAX_REQUEST_BYTES + 1))
    assert refusal.value.code is Code.TOO_LARGE


async def test_a_name_of_another_account_is_refused(
    registry, open_sponsor, author, local_chain, blocks
):
    other = local_chain.signer(wei=0)
    sponsor = open_sponsor(allowed=[author.address, other.address])
    request = await signed(registry, author)
    await sponsor.publish(body(await signed(registry, other)))
    with pytest.raises(Refused) as refusal:
        await sponsor.publish(body(request))
    assert refusal.value.code is Code.NAME_TAKEN


@asynccontextmanager
async def served(sponsor, wait_s):
    """The sponsor behind uvicorn; yields its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=routes(sponsor, wait_s=wait_s), exception_handlers=EXCEPTION_HANDLERS)
    config = uvicorn.Config(app, log_config=None, lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    await server.shutdown(sockets=[listener])


async def test_a_client_asks_again_until_the_block_is_there(
    registry, chain, local_chain, open_sponsor, author, signer
):
    request, sponsor = await signed(registry, author), open_sponsor()
    local_chain.call("evm_setAutomine", False)
    asked = []

    def on_wait(words):
        asked.append(words)
        if len(asked) == 2:
            local_chain.call("evm_setAutomine", True)
            local_chain.call("anvil_mine")

    async with served(sponsor, wait_s=0.05) as url:
        answer = await send_request(request, url, on_wait=on_wait)
        assert answer["tx_hash"].startswith("0x")
        assert asked[:2] == ["the sponsor waits for the block"] * 2
        assert (await send_request(request, url))["already"]
    assert await chain.nonce(signer.address, "latest") == 1
    await sponsor.close()


async def test_a_client_does_not_wait_for_a_share_of_the_next_day(
    registry, open_sponsor, author, tmp_path
):
    sponsor = open_sponsor()
    asked: list[str] = []
    now = [100.0]
    share = Share(publications=1)
    sponsor.budget = Budget(tmp_path / "share.json", ETHER, share, lambda: now[0])
    async with served(sponsor, wait_s=30.0) as url:
        await send_request(await signed(registry, author), url)
        now[0] += 3600
        more = await signed(registry, author, version="1.0.1")
        with pytest.raises(Unavailable, match="share") as refusal:
            await send_request(more, url, timeout_s=2, on_wait=asked.append)
    assert refusal.value.details == {"retry_after_s": 82_801}
    assert "try again in 24 h" in refusal.value.fix
    assert asked == []
    assert problem(refusal.value).headers["Retry-After"] == "82801"


async def test_a_sponsor_that_is_down_is_named(registry, author):
    request = await signed(registry, author)
    with pytest.raises(Unavailable, match="does not answer") as failure:
        await send_request(request, "http://127.0.0.1:1", timeout_s=0.1)
    assert failure.value.code is Code.SERVICE_UNAVAILABLE


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_no_other_json_is_a_request(value):
    with pytest.raises(InvalidInput):
        SponsorRequest.parse(json.dumps(value).encode())


@given(st.binary(max_size=200))
def test_no_other_bytes_are_a_request(data):
    with pytest.raises(InvalidInput):
        SponsorRequest.parse(data)


async def test_a_request_survives_its_json(registry, author):
    request = await signed(registry, author)
    assert SponsorRequest.parse(body(request)) == request


@given(st.sampled_from(["chain_id", "nonce", "secret", "signature", "package", "publisher"]),
       st.none() | st.booleans() | st.floats() | st.lists(st.integers()) | st.just("0xzz")
       | st.just("9" * 101) | st.just(-1))  # fmt: skip
def test_a_member_of_another_kind_is_refused(member, value):
    whole = SponsorRequest(1, "0x" + "00" * 20, "0x" + "00" * 20, 0, 0, b"x").to_json()
    if member == "package" and isinstance(value, str):
        return
    with pytest.raises(InvalidInput):
        SponsorRequest.parse(json.dumps(whole | {member: value}).encode())


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text())["signatures"])
def test_the_signed_document_is_that_of_the_vectors(vector):
    """The contract's own vectors; the document's values are not those of a package."""
    said = Announcement(
        int(vector["chain_id"]), vector["publisher"], f"{PREFIX}{vector['name']}@1.0.0",
        vector["semver"], vector["cid"], bytes.fromhex(vector["sha256"][2:]),
    )  # fmt: skip
    request = SponsorRequest(
        int(vector["chain_id"]), vector["contract"], vector["publisher"], int(vector["nonce"]),
        int(vector["deadline"]), b"", bytes.fromhex(vector["secret"][2:]),
    )  # fmt: skip
    signature = bytes.fromhex(vector["signature"][2:])
    assert recover_typed_data(request.document(said), signature) == vector["publisher"]


def test_two_sponsors_do_not_share_a_budget(tmp_path):
    path = tmp_path / "sponsor" / "budget.json"
    with Budget.open(path, 1), pytest.raises(UsageError), Budget.open(path, 1):
        raise AssertionError


def test_the_share_of_an_account_counts_for_a_day_also_after_a_restart(tmp_path):
    path, now, share = tmp_path / "budget.json", [1_000.0], Share(publications=2, wei=9)
    budget = Budget(path, 100, share, lambda: now[0])
    for key in ("0xa-1", "0xa-2"):
        budget.check_account(key)
        budget.reserve(key, 10)
        budget.charge(key, 4)
        budget.release(key)
        now[0] += 3_600
    for one in (budget, Budget(path, 100, share, lambda: now[0])):
        assert (one.spent_wei, one.left_wei) == (8, 92)
        one.check_account("0xb-1")
        with pytest.raises(Unavailable):
            one.check_account("0xa-1")  # another try of it counts as well
        with pytest.raises(Unavailable) as refused:
            one.check_account("0xa-3")
        assert refused.value.code is Code.RATE_LIMITED
        assert refused.value.details == {"retry_after_s": 22 * 3_600 + 1}
        assert refused.value.fix.startswith("try again in 23 h;")
    now[0] = 1_000.0 + 86_400
    budget.check_account("0xa-3")
    budget.reserve("0xa-2", 10)
    budget.charge("0xa-2", 5)  # 9 of 9
    with pytest.raises(Unavailable):
        budget.check_account("0xa-3")


def test_what_is_set_aside_is_for_one_publication_until_it_is_given_back_or_lost(tmp_path):
    budget = Budget(tmp_path / "budget.json", 100)
    budget.reserve("0xa-1", 60)
    assert (budget.available("0xa-1"), budget.available("0xa-2")) == (100, 40)
    with pytest.raises(Refused):
        budget.reserve("0xa-2", 41)
    assert (budget.has("0xa-1"), budget.has("0xa-2")) == (True, False)
    Budget(tmp_path / "budget.json", 100, Share(publications=1)).check_account("0xa-1")
    budget.charge("0xa-1", 70)  # more than was set aside
    assert (budget.spent_wei, budget.left_wei) == (70, 30)
    budget.reserve("0xa-2", 30)
    budget.charge("0xa-2", 10)
    budget.forfeit("0xa-2")
    budget.forfeit("0xa-3")
    assert (budget.spent_wei, budget.left_wei, budget.has("0xa-2")) == (100, 0, False)
    budget.charge("0xa-2", 10)
    assert (budget.spent_wei, budget.left_wei) == (110, 0)


def test_a_budget_file_that_cannot_be_read_is_not_a_new_budget(tmp_path):
    with pytest.raises(UsageError, match="does not say what was spent"):
        Budget(tmp_path, 1)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "é", "[]", "5", "null", "{}", '{"spent_wei": 1}', '{"reserved_wei": {}}'),
        *('{"spent_wei": "x", "reserved_wei": {}}', '{"spent_wei": null, "reserved_wei": {}}'),
        *('{"spent_wei": 1, "reserved_wei": []}', '{"spent_wei": 1, "reserved_wei": {"a": []}}'),
        '{"spent_wei": 1, "reserved_wei": {}, "begun": {"a": [1]}}',
    ],
    ids=lambda text: text[:60],
)
def test_a_broken_budget_file_is_not_a_new_budget(tmp_path, text):
    path = tmp_path / "budget.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError):
        Budget(path, 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50), st.integers(0, 50))))
def test_a_budget_is_never_exceeded(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("budget") / "budget.json"
    budget = Budget(path, 100)
    for key, reserved, cost in steps:
        try:
            budget.reserve(key, reserved)
        except Refused:
            continue
        budget.charge(key, min(cost, reserved))
        again = Budget(path, 100)
        assert (again.spent_wei, again.left_wei) == (budget.spent_wei, budget.left_wei)
        budget.release(key)
        assert budget.spent_wei + budget.left_wei == 100


@asynccontextmanager
async def answering(status, answer):
    """A server that answers each request with a status and a JSON object; its URL."""

    async def serve(_reader, writer):
        body = orjson.dumps(answer)
        head = b"HTTP/1.1 %d Any\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        writer.write(head + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_url_that_is_no_sponsor_s_is_told_at_once(registry, author):
    request = await signed(registry, author)
    async with answering(200, {"ok": True}) as address:
        for url in (address, "sponsor.example.net"):  # the second has no scheme
            with pytest.raises(UsageError, match="is no sponsor"):
                await send_request(request, url, timeout_s=2)


async def test_a_proxy_before_a_sponsor_that_is_down_is_told_as_such(registry, author):
    request = await signed(registry, author)
    asked: list[str] = []
    async with answering(502, {"error": "bad gateway"}) as url:
        with pytest.raises(Unavailable, match="does not answer") as down:
            await send_request(request, url, timeout_s=0.4, on_wait=asked.append)
    assert down.value.why == "it answered 502"
    assert asked
    assert all("does not answer" in words for words in asked)


@pytest.mark.parametrize("member", ["cap_uri", "cid", "sha256"])
async def test_an_answer_about_another_release_is_not_believed(registry, author, member):
    request = await signed(registry, author)
    said = request.verify().announcement
    release = {"cap_uri": said.cap_uri, "cid": said.cid, "sha256": said.sha256.hex()}
    other = {"cap_uri": "did:nuwa:cap:other@1.0.0", "cid": said.cid[:-1], "sha256": "00" * 32}
    release[member] = other[member]
    async with answering(200, release) as url:
        with pytest.raises(UsageError, match="is no sponsor") as refused:
            await send_request(request, url, timeout_s=2)
    assert "another release" in refused.value.why
