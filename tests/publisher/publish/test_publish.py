"""Publishing on a real Anvil: once, however often and wherever it is interrupted."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys

import pytest
from eth_account import Account

from capdex.errors import Code, InvalidInput, Refused, Unavailable, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import divide
from capdex.manifest.manifest import read
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.multi_source import MultiSource, fetch_resources
from capdex.registry.events import PUBLISHED, Published
from capdex.registry.logs import LogHead
from capdex.yaml.reader import read_yaml
from capdex_publisher.authoring.files import list_files, section
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.authoring.validate import PackageFile
from capdex_publisher.ethereum.contract import Receipt, all_events
from capdex_publisher.ethereum.transaction import Leaving, Sent
from capdex_publisher.keys.signer import LocalSigner
from capdex_publisher.progress import FilesUploaded, Served, Step, Uploaded
from capdex_publisher.publish.plan import PublishPlan
from capdex_publisher.publish.preflight import VersionComparison
from capdex_publisher.publish.prepare import FileRead, FileSigned
from capdex_publisher.publish.publish import publish as publish_files
from capdex_publisher.publish.upload import Uploader


class Killed(BaseException):
    """What SIGKILL looks like from inside: nothing after it runs."""


async def package(signer, name="note", version="1.0.0", description="Notes"):
    text = scaffold(name, version=version, description=description, kind=PackageKind.PROMPT)
    return await sign(text.encode(), signer, chain_id=31337)


async def publish(data, registry, signer, blocks, **options):
    """The result for one package; raises why it is not published."""
    options = {"uploader": Uploader(blocks), "chain_id": 31337, **options}
    files = [PackageFile("note.acp.yaml", data)]
    (result,) = await publish_files(files, registry=registry, signer=signer, **options)
    if result.error is not None:
        raise result.error
    return result


async def plan(data, registry, signer, blocks):
    """The plan of a dry run; raises why there is none."""
    steps: list[Step] = []
    await publish(data, registry, signer, blocks, dry_run=True, on_step=steps.append)
    return next(step for step in steps if isinstance(step, PublishPlan))


async def events(registry):
    return await all_events(registry, [])


def kill_at(kind):
    def on_step(step):
        if isinstance(step, kind):
            raise Killed

    return on_step


async def test_a_package_is_published_step_by_step(registry, signer, blocks):
    data, asked = await package(signer), list[PublishPlan]()
    steps: list[Step] = []

    async def confirm(plan):
        asked.append(plan)
        assert await events(registry) == []
        return True

    async def is_served(uri, sha256):
        return (uri, sha256) == ("did:nuwa:cap:note@1.0.0", hashlib.sha256(data).hexdigest())

    result = await publish(
        data, registry, signer, blocks, confirm=confirm, is_served=is_served, on_step=steps.append
    )
    kinds = [FileRead, FileSigned, VersionComparison, PublishPlan, Uploaded]
    assert [type(step) for step in steps] == [*kinds, Leaving, Sent, Receipt, Served]
    (planned,) = asked
    (transaction,) = planned.transactions
    assert result.claims_name
    assert result.cap_uri == "did:nuwa:cap:note@1.0.0"
    assert result.sha256 == hashlib.sha256(data).hexdigest()
    assert result.cid == str(Cid.of(data))
    assert not result.already
    assert result.served_after_s is not None
    assert result.receipt.gas_used <= transaction.gas
    assert await blocks.get(Cid.of(data)) == data
    release = await registry.release("note", "1.0.0")
    assert release.sha256.hex() == result.sha256


async def test_nothing_is_uploaded_or_sent_without_consent(registry, signer, blocks):
    async def confirm(plan):
        return False

    data = await package(signer)
    with pytest.raises(Refused) as refusal:
        await publish(data, registry, signer, blocks, confirm=confirm)
    assert refusal.value.code is Code.NO_CONSENT
    assert await events(registry) == []
    with pytest.raises(Unavailable):
        await blocks.get(Cid.of(data))


async def test_publishing_again_asks_nobody_and_finds_what_is_there(registry, signer, blocks):
    async def confirm(plan):
        raise AssertionError

    data = await package(signer)
    first = await publish(data, registry, signer, blocks)
    planned = await plan(data, registry, signer, blocks)
    assert planned.candidates[0].already
    assert planned.transactions == ()
    again = await publish(data, registry, signer, blocks, confirm=confirm)
    assert again.already
    assert (again.receipt.tx_hash, again.receipt.block_number) == (
        first.receipt.tx_hash,
        first.receipt.block_number,
    )
    assert len(await events(registry)) == 1


async def test_publishing_again_puts_lost_bytes_back(registry, signer, blocks, tmp_path):
    data = await package(signer)
    await publish(data, registry, signer, blocks)
    for block in (tmp_path / "blocks").rglob("*"):
        if block.is_file():
            block.unlink()
    await publish(data, registry, signer, blocks)
    assert await blocks.get(Cid.of(data)) == data


async def test_a_dry_run_gives_the_transaction_that_another_wallet_can_send(
    registry, signer, blocks
):
    data = await package(signer)
    result = await publish(data, registry, signer, blocks, dry_run=True)
    transaction = result.transaction.to_json()
    assert transaction["to"] == registry.address
    assert transaction["value"] == 0
    assert transaction["gas"] > 0
    assert transaction["data"].startswith("0x")
    assert result.receipt is None
    assert await events(registry) == []
    with pytest.raises(Unavailable):
        await blocks.get(Cid.of(data))


async def test_other_bytes_under_a_version_are_refused(registry, signer, blocks):
    await publish(await package(signer), registry, signer, blocks)
    with pytest.raises(InvalidInput) as refusal:
        await plan(await package(signer, description="Other"), registry, signer, blocks)
    assert refusal.value.code is Code.VERSION_EXISTS


async def test_a_name_belongs_to_its_first_publisher(registry, signer, blocks, local_chain):
    await publish(await package(signer), registry, signer, blocks)
    second = local_chain.signer()
    with pytest.raises(Refused) as owned:
        await plan(await package(second, version="2.0.0"), registry, second, blocks)
    assert owned.value.code is Code.NAME_TAKEN
    assert signer.address in owned.value.message
    with pytest.raises(Refused) as looks_alike:
        await plan(await package(second, name="n0te"), registry, second, blocks)
    assert looks_alike.value.code is Code.NAME_TAKEN
    assert signer.address in looks_alike.value.message
    assert f"capdex maintainer add note {second.address}" in looks_alike.value.fix


async def test_who_owns_the_name_that_looks_alike_is_not_sent_to_its_owner(
    registry, signer, blocks
):
    await publish(await package(signer), registry, signer, blocks)
    with pytest.raises(Refused) as refused:
        await plan(await package(signer, name="n0te"), registry, signer, blocks)
    assert refused.value.code is Code.NAME_TAKEN
    assert refused.value.fix == "pick another name, or publish under note, which is yours"


async def test_what_no_node_would_serve_costs_nothing(registry, signer, blocks, local_chain):
    foreign = await package(local_chain.signer())
    with pytest.raises(VerificationFailure) as unbound:
        await plan(foreign, registry, signer, blocks)
    assert unbound.value.details is not None
    assert unbound.value.details["reason"] == "NOT_BOUND"
    changed = foreign.replace(b"Notes", b"Words")
    with pytest.raises(VerificationFailure) as refusal:
        await plan(changed, registry, signer, blocks)
    assert refusal.value.details is not None
    assert refusal.value.details["reason"] == "BAD_SIGNATURE"
    with pytest.raises(InvalidInput) as broken:
        await plan(b"metadata: 1", registry, signer, blocks)
    assert broken.value.details is not None
    assert broken.value.details["problems"]


async def test_a_package_for_another_chain_than_the_registry_s_is_not_announced(
    registry, signer, blocks
):
    data = scaffold("note", description="Notes", kind=PackageKind.PROMPT).encode()
    with pytest.raises(Refused) as refusal:
        await publish(data, registry, signer, blocks, chain_id=5)
    assert refusal.value.code is Code.WRONG_CHAIN
    assert await events(registry) == []


async def test_an_unsigned_or_changed_file_of_ours_is_signed_where_it_is(
    registry, signer, blocks, tmp_path
):
    path = tmp_path / "note.acp.yaml"
    for data in (
        scaffold("note", description="Notes", kind=PackageKind.PROMPT).encode(),
        (await package(signer)).replace(b"Notes", b"Words"),
    ):
        path.write_bytes(data)
        for dry_run in (True, False):
            assert path.read_bytes() == data
            (result,) = await publish_files(
                [PackageFile.read(path)],
                registry=registry,
                chain_id=31337,
                signer=signer,
                uploader=Uploader(blocks),
                dry_run=dry_run,
            )
            assert result.error is None
        assert hashlib.sha256(path.read_bytes()).hexdigest() == result.sha256


async def test_a_signed_file_is_parsed_once_on_its_way(registry, signer, blocks):
    data, parsed = await package(signer), []

    def count(frame, event, _):
        if event == "call" and frame.f_code is read_yaml.__code__:
            parsed.append(frame.f_locals["data"])

    sys.setprofile(count)
    try:
        await publish(data, registry, signer, blocks)
    finally:
        sys.setprofile(None)
    assert parsed == [data]


async def test_an_empty_account_is_refused_before_anything_is_uploaded(
    registry, local_chain, blocks
):
    poor = local_chain.signer(wei=0)
    data = await package(poor)
    with pytest.raises(Refused) as refusal:
        await publish(data, registry, poor, blocks)
    with pytest.raises(Unavailable):
        await blocks.get(Cid.of(data))
    assert refusal.value.code is Code.EMPTY_ACCOUNT
    assert poor.address in refusal.value.fix


@pytest.mark.parametrize("moment", [Uploaded, Sent, Receipt, Served])
async def test_a_killed_publication_is_finished_by_running_it_again(
    registry, signer, blocks, moment
):
    async def is_served(_uri, _sha256):
        return True

    data = await package(signer)
    with pytest.raises(Killed):
        await publish(data, registry, signer, blocks, is_served=is_served, on_step=kill_at(moment))
    outcome = await publish(data, registry, signer, blocks, is_served=is_served)
    assert outcome.receipt.tx_hash is not None
    assert outcome.served_after_s is not None
    assert len(await events(registry)) == 1
    again = await publish(data, registry, signer, blocks)
    assert again.already
    assert again.receipt.tx_hash == outcome.receipt.tx_hash


async def test_a_transaction_that_waits_for_its_block_is_waited_for_not_sent_twice(
    registry, signer, blocks, local_chain
):
    data = await package(signer)
    local_chain.call("evm_setAutomine", False)
    with pytest.raises(Killed):
        await publish(data, registry, signer, blocks, on_step=kill_at(Sent))
    planned = await plan(data, registry, signer, blocks)
    resumed = planned.candidates[0].resumes
    assert resumed is not None
    assert planned.transactions == ()
    local_chain.call("evm_mine")
    outcome = await publish(data, registry, signer, blocks)
    assert outcome.receipt.tx_hash == resumed.tx_hash
    nonce = local_chain.call("eth_getTransactionCount", signer.address, "latest")
    assert int(nonce, 16) == 1


async def test_a_journal_entry_that_never_left_or_is_garbage_is_ignored(
    registry, signer, blocks, tmp_path
):
    data = await package(signer)
    with pytest.raises(Killed):
        await publish(data, registry, signer, blocks, on_step=kill_at(Sent))
    (entry,) = (tmp_path / "state" / "sent").iterdir()
    for garbage in ("", "{}", '{"tx_hash": "0x00", "nonce": 1, "fingerprint": "x"}', "[1]"):
        entry.write_text(garbage)
        assert (await plan(data, registry, signer, blocks)).candidates[0].already


async def test_the_same_release_published_twice_at_once_is_paid_once(
    registry, signer, blocks, local_chain
):
    data = await package(signer)
    both_planned = asyncio.Barrier(2)
    sent = asyncio.Semaphore(0)

    async def confirm(plan):
        await both_planned.wait()
        local_chain.call("evm_setAutomine", False)
        return True

    def on_step(step):
        if isinstance(step, Sent):
            sent.release()

    running = [
        asyncio.create_task(
            publish(data, registry, signer, blocks, confirm=confirm, on_step=on_step)
        )
        for _ in range(2)
    ]
    for _ in running:
        await sent.acquire()
    local_chain.call("evm_mine")
    outcomes = await asyncio.gather(*running)
    # The chain may take the second for the first once more: then both wait for the same one.
    assert not all(outcome.already for outcome in outcomes)
    assert len({outcome.receipt.tx_hash for outcome in outcomes}) == 1
    assert len(await events(registry)) == 1
    nonce = local_chain.call("eth_getTransactionCount", signer.address, "latest")
    assert int(nonce, 16) == 1


async def test_five_publications_of_one_account_at_once_are_five_events(registry, signer, blocks):
    names = [f"note-{letter}" for letter in "abcde"]
    outcomes = await asyncio.gather(
        *[publish(await package(signer, name=name), registry, signer, blocks) for name in names]
    )
    assert len({outcome.receipt.tx_hash for outcome in outcomes}) == 5
    rpc, address = registry.chain.rpc, bytes.fromhex(registry.address[2:])
    logs = await rpc.logs(address, 0, await registry.chain.head())
    assert [log.topics[0] for log in logs] == [PUBLISHED] * 5
    head = LogHead()
    for log in logs:
        head = head.fold(log)
    assert head.count == 5


async def test_a_storage_that_keeps_other_bytes_stops_before_the_chain(registry, signer, tmp_path):
    class Liar(BlockDirectory):
        async def get(self, cid):
            return b"others"

    liar = Liar(tmp_path / "blocks")
    with pytest.raises(Unavailable) as refusal:
        await publish(await package(signer), registry, signer, liar)
    assert refusal.value.code is Code.IPFS_UNAVAILABLE
    assert await events(registry) == []


async def test_a_node_that_does_not_serve_the_release_is_no_failure(registry, signer, blocks):
    async def down(_uri, _sha256):
        raise Unavailable("the node is down", Code.NODE_UNAVAILABLE)

    outcome = await publish(
        await package(signer), registry, signer, blocks, is_served=down, served_timeout_s=0.01
    )
    assert outcome.receipt.tx_hash is not None
    assert (outcome.served_after_s, outcome.not_served) == (None, "the node is down")


async def test_no_key_is_ever_logged(registry, local_chain, blocks, caplog):
    account = Account.create()
    local_chain.call("anvil_setBalance", account.address, hex(10**18))
    signer = LocalSigner(account.key)
    caplog.set_level(logging.DEBUG)
    await publish(await package(signer), registry, signer, blocks)
    assert account.key.hex() not in caplog.text


# files of a package ----------------------------------------------------------------------------

FILES = {"scripts/fill.py": b"print()\n", "large.bin": bytes(range(256)) * 2048, "empty": b""}


@pytest.fixture
async def skill(signer, tmp_path):
    """A signed package with files in a folder beside it."""
    for path, content in FILES.items():
        (tmp_path / "note" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "note" / path).write_bytes(content)
    text = scaffold("note", version="1.0.0", description="Notes", kind=PackageKind.PROMPT)
    text += "\n" + section(list_files(tmp_path / "note")[0])
    data = await sign(text.encode(), signer, chain_id=31337)
    return PackageFile("note.acp.yaml", data, tmp_path / "note.acp.yaml")


async def publish_skill(skill, registry, signer, blocks, **options):
    options = {"uploader": Uploader(blocks), "chain_id": 31337, **options}
    (result,) = await publish_files([skill], registry=registry, signer=signer, **options)
    if result.error is not None:
        raise result.error
    return result


async def test_files_are_uploaded_and_read_back_before_their_package(
    registry, signer, blocks, skill
):
    steps: list[Step] = []
    await publish_skill(skill, registry, signer, blocks, on_step=steps.append)
    kinds = [type(step) for step in steps]
    assert kinds.index(FilesUploaded) < kinds.index(Uploaded) < kinds.index(Sent)
    (files,) = [step for step in steps if isinstance(step, FilesUploaded)]
    assert (files.count, files.size_bytes) == (3, sum(map(len, FILES.values())))
    resources = read(skill.data).require().resources
    assert await fetch_resources(resources, MultiSource([blocks])) == FILES


async def test_a_file_that_changed_is_refused_by_name_before_anything_is_sent(
    registry, signer, blocks, skill
):
    (skill.folder / "scripts/fill.py").write_text("import os\n")
    with pytest.raises(InvalidInput) as refusal:
        await publish_skill(skill, registry, signer, blocks)
    assert "scripts/fill.py changed" in refusal.value.why
    assert await events(registry) == []


async def test_a_file_that_changes_while_a_person_decides_is_refused_by_name(
    registry, signer, blocks, skill
):
    async def confirm(plan):
        (skill.folder / "scripts/fill.py").write_text("import os\n")
        return True

    with pytest.raises(InvalidInput, match="not those that it names"):
        await publish_skill(skill, registry, signer, blocks, confirm=confirm)
    assert await events(registry) == []


@pytest.mark.parametrize("kind", [PublishPlan, FilesUploaded, Uploaded, Sent, Receipt])
async def test_files_survive_a_kill_at_any_step_and_are_paid_for_once(
    registry, signer, blocks, skill, kind
):
    with pytest.raises(Killed):
        await publish_skill(skill, registry, signer, blocks, on_step=kill_at(kind))
    await publish_skill(skill, registry, signer, blocks)
    assert len([x for x in await events(registry) if isinstance(x, Published)]) == 1
    resources = read(skill.data).require().resources
    assert await fetch_resources(resources, MultiSource([blocks])) == FILES


async def test_a_storage_that_loses_a_file_stops_before_the_chain(
    registry, signer, blocks, skill, tmp_path
):
    class Losing(BlockDirectory):
        async def put(self, data):
            return divide(data)[0][0] if data == FILES["large.bin"] else await super().put(data)

    losing = Losing(tmp_path / "losing")
    with pytest.raises(Unavailable, match="did not keep a file"):
        await publish_skill(skill, registry, signer, blocks, uploader=Uploader(losing))
    assert await events(registry) == []
