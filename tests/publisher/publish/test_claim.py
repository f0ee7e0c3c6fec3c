"""New names where the registry wants a commitment first: a minute of block time, and no copy."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import indent

import pytest
from eth_account import Account

from capdex.encoding.abi import parse_address
from capdex.errors import Code, InvalidInput, Refused
from capdex.registry.events import Claimed, Committed, Published
from capdex_publisher import commit_reveal
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.authoring.validate import PackageFile
from capdex_publisher.commit_reveal import CommitSecretFile, commitment_of, secret_text
from capdex_publisher.deploy import create2
from capdex_publisher.deploy.deploy import deploy
from capdex_publisher.ethereum.contract import Receipt, all_events
from capdex_publisher.ethereum.transaction import Leaving, Sent
from capdex_publisher.progress import Reserved, Reserving, Step
from capdex_publisher.publish.claim import claim as claim_name
from capdex_publisher.publish.plan import PublishPlan, claim_gas
from capdex_publisher.publish.publish import publish as publish_files
from capdex_publisher.publish.upload import Uploader
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.submit import submit

AGE_S = 60
DAY_S = 86_400


class Killed(BaseException):
    """What SIGKILL looks like from inside: nothing after it runs."""


@pytest.fixture
async def registry(chain, local_chain, tmp_path):
    """A registry as on a public chain: commitments of a minute to a day."""
    wanted = create2.registry(31337, min_age_s=AGE_S, max_age_s=DAY_S)
    made, _ = await deploy(chain, local_chain.signer(), tmp_path / "deployments", wanted)
    return Registry(chain, made.address, start_block=made.block_number)


@pytest.fixture
def pass_time(local_chain):
    """`pass_time(seconds)` moves the clock of the chain."""

    def move(seconds):
        local_chain.call("evm_increaseTime", seconds)
        local_chain.call("evm_mine")

    return move


@pytest.fixture
def patience(pass_time):
    """An `on_step` that keeps the steps, and lets a minute pass when it has to be waited for."""
    steps: list[Step] = []

    def on_step(step):
        if isinstance(step, Reserving) and not any(isinstance(x, Reserving) for x in steps):
            pass_time(AGE_S)
        steps.append(step)

    on_step.steps = steps  # type: ignore[attr-defined]
    return on_step


async def package(signer, name="note", version="1.0.0"):
    text = scaffold(name, version=version, description="Notes", kind=PackageKind.PROMPT)
    return await sign(text.encode(), signer, chain_id=31337)


async def publish(files, registry, signer, blocks, **options):
    """The results of packages; raises why one is not published."""
    named = [PackageFile(f"{number}.acp.yaml", data) for number, data in enumerate(files)]
    options = {"uploader": Uploader(blocks), "chain_id": 31337, **options}
    results = await publish_files(named, registry=registry, signer=signer, **options)
    for one in results:
        if one.error is not None:
            raise one.error
    return results


async def plan(files, registry, signer, blocks, **options):
    steps: list[Step] = []
    await publish(files, registry, signer, blocks, dry_run=True, on_step=steps.append, **options)
    return next(step for step in steps if isinstance(step, PublishPlan))


async def claim(name, registry, signer, **options):
    return await claim_name(name, registry=registry, signer=signer, **options)


async def events(registry):
    return [type(event) for event in await all_events(registry, [])]


async def nonce(registry, signer):
    return await registry.chain.nonce(signer.address, "latest")


# ----------------------------------------------------------------------------------- publishing


async def test_a_new_name_is_reserved_awaited_by_block_time_and_claimed_with_its_release(
    registry, signer, blocks, patience
):
    (outcome,) = await publish([await package(signer)], registry, signer, blocks, on_step=patience)
    kinds = [type(step).__name__ for step in patience.steps]
    kinds = kinds[kinds.index("PublishPlan") + 1 :]
    assert kinds[:3] == ["Uploaded", "Leaving", "Sent"]
    assert kinds[-3:] == ["Leaving", "Sent", "Receipt"]
    assert kinds[3] == "Reserved"
    assert set(kinds[4:-3]) == {"Reserving"}
    waited = [step for step in patience.steps if isinstance(step, Reserving)]
    assert waited[0].names == ("note",)
    assert 0 < waited[0].left_s <= AGE_S
    assert not outcome.already
    assert await registry.owner_of("note") == signer.address
    assert await events(registry) == [Committed, Published]


async def test_a_chain_that_makes_no_block_meanwhile_is_not_waited_for(
    chain, local_chain, tmp_path, signer, blocks
):
    wanted = create2.registry(31337, min_age_s=1, max_age_s=DAY_S)
    made, _ = await deploy(chain, local_chain.signer(), tmp_path / "deployments", wanted)
    registry = Registry(chain, made.address, start_block=made.block_number)
    await publish([await package(signer)], registry, signer, blocks)
    await claim("other", registry, signer)
    assert await events(registry) == [Committed, Published, Committed, Claimed]


async def test_an_endpoint_that_has_not_seen_the_commitment_is_asked_again_and_it_is_paid_once(
    registry, signer, blocks, patience, local_chain, endpoint_before, tmp_path, monkeypatch
):
    """A balancer has endpoints that are some blocks behind, and any of them may estimate."""
    monkeypatch.setattr(commit_reveal, "DEV_CHAIN_ID", 0)  # blocks come by themselves
    monkeypatch.setattr(commit_reveal, "POLL_S", 0.0)
    before, estimates = local_chain.call("eth_blockNumber"), []

    def answer(method, params):
        made = any(isinstance(step, Reserved) for step in patience.steps)
        if method != "eth_estimateGas" or not made:
            return None
        estimates.append(local_chain.raw(method, params[0], before))
        return estimates[-1] if len(estimates) == 1 else None

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as balanced,
    ):
        await publish([await package(signer)], balanced, signer, blocks, on_step=patience)
    assert "error" in estimates[0]
    assert await events(registry) == [Committed, Published]


async def test_several_new_names_are_reserved_side_by_side_and_published_together(
    registry, signer, blocks, patience
):
    files = [await package(signer, name=name) for name in ("alpha", "beta", "gamma")]
    files.append(await package(signer, name="beta", version="1.1.0"))
    outcomes = await publish(files, registry, signer, blocks, on_step=patience)
    assert len({outcome.receipt.tx_hash for outcome in outcomes}) == 1
    assert [len(outcome.receipt.events) for outcome in outcomes] == [4] * 4
    assert await events(registry) == [Committed] * 3 + [Published] * 4
    assert await nonce(registry, signer) == 4


@pytest.mark.parametrize("moment", [Sent, Reserved, Reserving, Receipt])
async def test_a_killed_reservation_is_found_again_and_paid_once(
    registry, signer, blocks, patience, moment
):
    def kill(step):
        if isinstance(step, moment):
            raise Killed
        patience(step)

    data = await package(signer)
    with pytest.raises(Killed):
        await publish([data], registry, signer, blocks, on_step=kill)
    await publish([data], registry, signer, blocks, on_step=patience)
    assert await events(registry) == [Committed, Published]
    assert await nonce(registry, signer) == 2


async def test_a_commitment_is_found_by_the_key_alone_when_all_state_is_lost(
    registry, signer, blocks, patience
):
    def kill(step):
        if isinstance(step, Reserved):
            raise Killed

    data = await package(signer)
    with pytest.raises(Killed):
        await publish([data], registry, signer, blocks, on_step=kill)
    shutil.rmtree(registry.chain.state_dir)
    planned = await plan([data], registry, signer, blocks)
    assert planned.commits == {}
    await publish([data], registry, signer, blocks, on_step=patience)
    assert await events(registry) == [Committed, Published]


async def test_a_commitment_that_expired_is_made_anew(
    registry, signer, blocks, patience, pass_time
):
    def kill(step):
        if isinstance(step, Reserved):
            raise Killed

    data = await package(signer)
    with pytest.raises(Killed):
        await publish([data], registry, signer, blocks, on_step=kill)
    pass_time(DAY_S + 1)
    assert set((await plan([data], registry, signer, blocks)).commits) == {"note"}
    await publish([data], registry, signer, blocks, on_step=patience)
    assert await events(registry) == [Committed, Committed, Published]


@pytest.mark.parametrize("pause_s", [0, DAY_S + 1])
async def test_a_commitment_that_was_mined_when_nobody_looked_is_told_and_leaves_no_file(
    registry, signer, blocks, patience, pass_time, pause_s
):
    def kill(step):
        if isinstance(step, Leaving):
            sent.append(step)
        if isinstance(step, Sent):
            raise Killed

    data, sent = await package(signer), list[Leaving]()
    with pytest.raises(Killed):
        await publish([data], registry, signer, blocks, on_step=kill)
    pass_time(pause_s)
    await publish([data], registry, signer, blocks, on_step=patience)
    made = [Committed] if not pause_s else [Committed, Committed]
    assert await events(registry) == [*made, Published]
    (told,) = [x.receipt.tx_hash for x in patience.steps if isinstance(x, Reserved)]
    assert (told == sent[0].tx_hash) == (not pause_s)
    assert list((registry.chain.state_dir / "sent").iterdir()) == []


async def test_a_commitment_that_is_old_enough_is_claimed_at_once_and_priced_by_estimate(
    registry, signer, blocks, patience, pass_time
):
    def kill(step):
        if isinstance(step, Reserved):
            raise Killed

    data = await package(signer)
    with pytest.raises(Killed):
        await publish([data], registry, signer, blocks, on_step=kill)
    pass_time(AGE_S)
    planned = await plan([data], registry, signer, blocks)
    assert len(planned.transactions) == 1
    assert planned.transactions[0].gas != claim_gas("note", "1.0.0")
    await publish([data], registry, signer, blocks, on_step=patience)
    assert not any(isinstance(step, Reserving) for step in patience.steps)


async def test_of_several_commitments_the_one_that_was_made_last_is_waited_for(
    registry, signer, blocks, patience, pass_time
):
    def kill(step):
        if isinstance(step, Reserved):
            raise Killed

    first, second = await package(signer), await package(signer, "other")
    with pytest.raises(Killed):
        await publish([first], registry, signer, blocks, on_step=kill)
    pass_time(AGE_S)
    await publish([first, second], registry, signer, blocks, on_step=patience)
    waited = [step for step in patience.steps if isinstance(step, Reserving)]
    assert AGE_S // 2 < waited[0].left_s <= AGE_S
    assert await events(registry) == [Committed, Committed, Published, Published]


@pytest.mark.parametrize("name", ["ab", "a" * 31, "a" * 32, "x" + "yz" * 31 + "q"])
@pytest.mark.parametrize("version", ["1.0.0", "1.0.0-" + "a" * 25, "1.0.0-" + "a" * 58])
async def test_no_claim_takes_more_gas_than_its_bound(
    registry, signer, blocks, patience, name, version
):
    data = await package(signer, name=name, version=version)
    planned = await plan([data], registry, signer, blocks)
    (outcome,) = await publish([data], registry, signer, blocks, on_step=patience)
    (batch,) = planned.batches
    assert batch.transaction.gas == claim_gas(name, version)
    assert outcome.receipt.gas_used <= batch.transaction.gas


async def test_the_cap_is_on_the_total_of_commitments_and_claims(registry, signer, blocks):
    data = await package(signer)
    planned = await plan([data], registry, signer, blocks)
    assert len(planned.transactions) == 2
    assert sum(one.fee_cap_wei for one in planned.transactions) <= 10**16
    expected = sum(one.expected_fee_wei for one in planned.transactions)
    enough = expected * 12 // 10 + 1
    capped = await plan([data], registry, signer, blocks, fee_cap_wei=enough)
    assert sum(one.max_fee_wei for one in capped.transactions) <= enough
    with pytest.raises(Refused) as refusal:
        await plan([data], registry, signer, blocks, fee_cap_wei=expected)
    assert refusal.value.code is Code.FEE_OVER_CAP


async def test_an_account_that_can_pay_each_but_not_all_is_told_before_anything_is_sent(
    registry, signer, blocks, local_chain
):
    data = await package(signer)
    planned = await plan([data], registry, signer, blocks)
    most = sum(one.max_fee_wei for one in planned.transactions)
    local_chain.call("anvil_setBalance", signer.address, hex(most * 9 // 10))
    with pytest.raises(Refused) as refusal:
        await plan([data], registry, signer, blocks)
    assert refusal.value.code is Code.EMPTY_ACCOUNT


async def test_an_owned_name_needs_no_commitment_and_its_maintainers_publish_too(
    registry, signer, blocks, patience, local_chain
):
    await publish([await package(signer)], registry, signer, blocks, on_step=patience)
    other = local_chain.signer()
    later = await package(other, version="1.1.0")
    with pytest.raises(Refused) as refusal:
        await plan([later], registry, other, blocks)
    assert refusal.value.code is Code.NAME_TAKEN
    assert signer.address in refusal.value.message
    assert f"capdex maintainer add note {other.address}" in refusal.value.fix
    priced = await registry.price(signer.address, "addMaintainer", "note", other.address)
    await confirm(registry.chain, await submit(registry.chain, signer, priced))
    (outcome,) = await publish([later], registry, other, blocks)
    assert not outcome.already
    assert (await events(registry)).count(Committed) == 1


@pytest.mark.parametrize("name", ["admin", "adm1n", "cap-dex"])
async def test_a_reserved_name_is_refused_before_anything_is_paid(registry, signer, blocks, name):
    with pytest.raises(Refused) as refusal:
        await plan([await package(signer, name=name)], registry, signer, blocks)
    assert refusal.value.code is Code.NAME_RESERVED


# ------------------------------------------------------------------------------ copied in flight


async def test_whoever_copies_a_claim_from_the_mempool_is_not_first(
    registry, signer, blocks, local_chain, pass_time
):
    copier, stolen = local_chain.signer(), []

    def copy(step):
        if isinstance(step, Reserving):
            pass_time(AGE_S)
            local_chain.call("evm_setAutomine", False)
        elif isinstance(step, Sent) and local_chain.call("txpool_content")["pending"]:
            stolen.append(send_copy(local_chain, copier, step.tx_hash, signer))
            local_chain.call("evm_mine")

    data = await package(signer)
    (outcome,) = await publish([data], registry, signer, blocks, on_step=copy)
    (theirs,) = stolen
    receipt = local_chain.call("eth_getTransactionReceipt", theirs)
    ours = local_chain.call("eth_getTransactionReceipt", outcome.receipt.tx_hash)
    assert receipt["blockNumber"] == ours["blockNumber"]
    assert int(receipt["transactionIndex"], 16) < int(ours["transactionIndex"], 16)
    assert (receipt["status"], ours["status"]) == ("0x0", "0x1")
    assert await registry.owner_of("note") == signer.address
    assert (await registry.release("note", "1.0.0")).sha256.hex() == outcome.sha256


async def test_whoever_copies_the_commitment_only_pays_for_it(
    registry, signer, blocks, local_chain, patience
):
    copier = local_chain.signer()

    def copy(step):
        if isinstance(step, Sent) and local_chain.call("txpool_content")["pending"]:
            send_copy(local_chain, copier, step.tx_hash, signer)
            local_chain.call("evm_mine")
            local_chain.call("evm_setAutomine", True)
        patience(step)

    local_chain.call("evm_setAutomine", False)
    await publish([await package(signer)], registry, signer, blocks, on_step=copy)
    first, _ = await all_events(registry, [])
    assert isinstance(first, Committed)
    assert first.by == copier.address
    assert await registry.owner_of("note") == signer.address


def send_copy(local_chain, copier, tx_hash, author):
    """Send the same call from another account at twice the fee; gives the copy's hash."""
    seen = local_chain.call("eth_getTransactionByHash", tx_hash)
    assert seen["from"].lower() == author.address.lower()
    fields = {
        "type": 2,
        "chainId": 31337,
        "nonce": 0,
        "to": parse_address(seen["to"]),
        "data": seen["input"],
        "value": 0,
        "gas": int(seen["gas"], 16),
        "maxFeePerGas": 2 * int(seen["maxFeePerGas"], 16),
        "maxPriorityFeePerGas": 2 * int(seen["maxPriorityFeePerGas"], 16),
    }
    signed = Account.from_key(copier.key).sign_transaction(fields)
    return local_chain.call("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())


# ---------------------------------------------------------------------------------- the secret


class Mute:
    """A signer that signs transactions and no messages, as some wallets do."""

    def __init__(self, signer):
        self._signer = signer
        self.address = signer.address

    async def sign_transaction(self, fields):
        return await self._signer.sign_transaction(fields)

    async def sign_message(self, message):
        raise Refused("it signs no messages", Code.SIGNER_REFUSED)


async def test_the_secret_follows_from_the_key_the_chain_the_registry_and_the_name(
    registry, signer, local_chain
):
    async def made(name, who):
        secret = await CommitSecretFile(registry, who.address, name).secret(who)
        shutil.rmtree(registry.chain.state_dir / "secrets")
        return secret

    first = await made("note", signer)
    assert await made("note", signer) == first
    assert await made("notes", signer) != first
    assert await made("note", local_chain.signer()) != first
    texts = {
        secret_text(chain_id, where, name)
        for chain_id in (1, 10)
        for where in ("0x" + "11" * 20, "0x" + "22" * 20)
        for name in ("note", "notes")
    }
    assert len(texts) == 8


def test_the_text_that_is_signed_for_the_secret_is_the_documented_one():
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text("utf-8")
    where = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    text = secret_text(11_155_111, where, "weather-reporter").decode("ascii")
    assert indent(text, "    ") in page


async def test_a_commitment_is_the_contracts_own(registry, signer):
    secret = bytes(range(32))
    expected = await registry.read("commitmentOf", "note", signer.address, secret)
    assert commitment_of("note", signer.address, secret) == bytes(expected)


async def test_a_signer_of_no_messages_gets_a_random_secret_kept_private(
    registry, signer, blocks, patience, pass_time
):
    def kill(step):
        if isinstance(step, Sent):
            raise Killed

    mute, data = Mute(signer), await package(signer)
    with pytest.raises(Killed):
        await publish([data], registry, mute, blocks, on_step=kill)
    (kept,) = (registry.chain.state_dir / "secrets").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    await publish([data], registry, mute, blocks, on_step=patience)
    assert await events(registry) == [Committed, Published]
    assert not kept.exists()


@pytest.mark.parametrize("garbage", ["", "zz", "00" * 31, "00" * 40])
async def test_a_secret_file_of_garbage_is_made_again(registry, signer, garbage):
    file = CommitSecretFile(registry, signer.address, "note")
    secret = await file.secret(signer)
    (kept,) = (registry.chain.state_dir / "secrets").iterdir()
    kept.write_text(garbage)
    assert await file.secret(signer) == secret
    assert kept.read_text() == secret.hex()


# ----------------------------------------------------------------------------- claiming alone


async def test_a_name_is_claimed_without_publishing(registry, signer, patience):
    done = await claim("note", registry, signer, on_step=patience)
    assert not done.already
    assert await registry.owner_of("note") == signer.address
    assert await events(registry) == [Committed, Claimed]
    again = await claim("note", registry, signer)
    assert again.already
    assert await nonce(registry, signer) == 2


@pytest.mark.parametrize("moment", [Sent, Reserved, Reserving, Receipt])
async def test_a_killed_claim_goes_on_where_it_was(registry, signer, patience, moment):
    def kill(step):
        if isinstance(step, moment):
            raise Killed
        patience(step)

    with pytest.raises(Killed):
        await claim("note", registry, signer, on_step=kill)
    await claim("note", registry, signer, on_step=patience)
    assert await events(registry) == [Committed, Claimed]
    assert await nonce(registry, signer) == 2


async def test_a_claimed_name_is_published_under_at_once(registry, signer, blocks, patience):
    await claim("note", registry, signer, on_step=patience)
    await publish([await package(signer)], registry, signer, blocks)
    assert await events(registry) == [Committed, Claimed, Published]


async def test_a_name_of_somebody_else_cannot_be_claimed(registry, signer, patience, local_chain):
    await claim("note", registry, signer, on_step=patience)
    other = local_chain.signer()
    for name, code in (("note", Code.NAME_TAKEN), ("n0te", Code.NAME_TAKEN)):
        with pytest.raises(Refused) as refusal:
            await claim(name, registry, other)
        assert refusal.value.code is code
    with pytest.raises(InvalidInput):
        await claim("Not A Name", registry, other)


async def test_where_no_commitment_is_wanted_none_is_made(chain, local_chain, tmp_path, signer):
    made, _ = await deploy(chain, local_chain.signer(), tmp_path / "deployments")
    registry = Registry(chain, made.address, start_block=made.block_number)
    await claim("note", registry, signer)
    assert await events(registry) == [Claimed]
