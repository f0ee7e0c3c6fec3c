"""Deploying the contracts: one address on every chain, whoever did it, and since when."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import Code, InvalidInput, Refused, Unavailable, UsageError
from capdex.net.files import write_atomically
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcFault, rpc_error
from capdex_publisher.deploy import create2
from capdex_publisher.deploy.deploy import DeployedContract, deploy, find, read_deployment, stands
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.ethereum.transaction import Shallow
from capdex_publisher.keys.signer import LocalSigner
from capdex_publisher.progress import Step
from capdex_publisher.registry.registry import Registry

SOMEONE = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"
FACTORY_TRANSACTION = (
    "0xf8a58085174876e800830186a08080b853604580600e600039806000f350fe"
    + create2.FACTORY_CODE.hex()
    + "1ba0"
    + "22" * 32
    + "a0"
    + "22" * 32
)


class Pruned(Rpc):
    """An endpoint that keeps the newest state alone, as most do."""

    async def call(self, method: str, params: Any = (), read: Any = lambda result: result) -> Any:
        if method == "eth_getCode" and params[1] != "latest":
            raise rpc_error(self.endpoint, RpcFault.NO_STATE, "missing trie node", answered=True)
        return await super().call(method, params, read)


# addresses ----------------------------------------------------------------------------------


def test_the_registry_of_every_public_chain_has_one_address() -> None:
    addresses = {create2.registry(chain_id).address for chain_id in (1, 10, 8453, 11155111)}
    assert len(addresses) == 1
    assert create2.registry(31337).address not in addresses
    assert dict(create2.registry(1).arguments) == {
        "MIN_COMMITMENT_AGE": 60,
        "MAX_COMMITMENT_AGE": 86_400,
    }


def test_other_ages_and_other_tokens_give_other_addresses() -> None:
    usual = create2.registry(1)
    assert create2.registry(1, min_age_s=60, max_age_s=86_400) == usual
    assert create2.registry(1, max_age_s=3600).address != usual.address
    made = {
        create2.votes(usual.address).address,
        create2.votes(SOMEONE).address,
        create2.votes(usual.address, token=SOMEONE).address,
        create2.votes(usual.address, token=SOMEONE, timepoint=7).address,
    }
    assert len(made) == 4


def test_ages_and_timepoints_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="60 s old at least and 59 s at most"):
        create2.registry(1, max_age_s=59)
    with pytest.raises(UsageError, match="timepoint"):
        create2.votes(SOMEONE, timepoint=7)
    with pytest.raises(UsageError, match="MAX_COMMITMENT_AGE"):
        create2.registry(1, max_age_s=1 << 256)


async def test_the_factory_of_anvil_is_the_one_of_every_chain(chain: Chain) -> None:
    assert await chain.code(create2.FACTORY) == create2.FACTORY_CODE


# deploying ----------------------------------------------------------------------------------


async def test_a_registry_lands_where_it_was_said_to_and_is_found_again(
    chain: Chain, signer: LocalSigner, tmp_path: Path
) -> None:
    first, new = await deploy(chain, signer, tmp_path)
    assert new
    assert first.address == first.registry == create2.registry(31337).address
    assert first.deployer == signer.address
    assert first.arguments == {"MIN_COMMITMENT_AGE": 0, "MAX_COMMITMENT_AGE": 0}
    path = tmp_path / "31337.json"
    assert read_deployment(path) == first
    assert list(json.loads(path.read_text())) == [
        *("chain_id", "contract", "address", "registry", "arguments", "deployer"),
        *("block_number", "block_hash", "tx_hash"),
    ]
    assert await deploy(chain, signer, tmp_path) == (first, False)
    assert await Registry(chain, first.registry).read("releaseCount", "note") == 0


@pytest.mark.parametrize("anvil", [("--hardfork", "shanghai")], indirect=True)
async def test_a_chain_without_cancun_is_told_before_anything_is_sent(
    chain: Chain, signer: LocalSigner, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="lacks instructions of Cancun") as refusal:
        await deploy(chain, signer, tmp_path)
    assert refusal.value.code is Code.NO_CONTRACT
    assert "MCOPY" in refusal.value.why
    assert await chain.nonce(signer.address, "pending") == 0


async def test_a_chain_that_mines_on_demand_is_told_to_need_more_blocks(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    steps: list[Step] = []

    def mine_another(step: Step) -> None:
        steps.append(step)
        local_chain.call("evm_mine")

    chain.confirmations = 3
    made, new = await deploy(chain, signer, tmp_path, on_step=mine_another)
    assert new
    assert steps == [Shallow(made.block_number, 2), Shallow(made.block_number, 1)]


async def test_a_public_registry_asks_for_commitments(
    chain: Chain, signer: LocalSigner, tmp_path: Path
) -> None:
    creation = create2.registry(11155111)
    made, _ = await deploy(chain, signer, tmp_path, creation)
    assert made.address == creation.address
    assert await Registry(chain, made.registry).commitment_ages() == (60, 86_400)


async def test_votes_are_deployed_for_one_registry(
    chain: Chain, signer: LocalSigner, tmp_path: Path
) -> None:
    registry, _ = await deploy(chain, signer, tmp_path)
    creation = create2.votes(registry.address)
    made, new = await deploy(chain, signer, tmp_path, creation)
    assert new
    assert (made.registry, made.address) == (registry.address, creation.address)
    assert read_deployment(tmp_path / "31337-votes.json") == made
    assert read_deployment(tmp_path / "31337.json") == registry
    assert await deploy(chain, signer, tmp_path, creation) == (made, False)


async def test_votes_by_something_that_is_no_token_are_refused(
    chain: Chain, signer: LocalSigner, tmp_path: Path
) -> None:
    registry, _ = await deploy(chain, signer, tmp_path)
    creation = create2.votes(registry.address, token=registry.address, timepoint=1)
    with pytest.raises(InvalidInput, match="cannot make CapabilityVotes") as refusal:
        await deploy(chain, signer, tmp_path, creation)
    assert refusal.value.code is Code.REVERTED
    assert "ERC-5805" in refusal.value.fix


async def test_an_empty_account_deploys_nothing(
    chain: Chain, local_chain: Any, tmp_path: Path
) -> None:
    with pytest.raises(Refused) as refusal:
        await deploy(chain, local_chain.signer(wei=0), tmp_path)
    assert refusal.value.code is Code.EMPTY_ACCOUNT
    assert list(tmp_path.glob("*.json")) == []  # noqa: ASYNC240 - a test's own folder


async def test_of_many_who_deploy_at_once_one_pays_and_all_find_the_same(
    chain: Chain, local_chain: Any, tmp_path: Path
) -> None:
    signers = [local_chain.signer() for _ in range(4)]
    outcomes = await asyncio.gather(
        *(deploy(chain, one, tmp_path / one.address) for one in signers)
    )
    assert sorted(new for _, new in outcomes) == [False, False, False, True]
    assert len({found.tx_hash for found, _ in outcomes}) == 1


# what stands already ------------------------------------------------------------------------


async def test_a_deployment_that_was_stopped_while_it_waited_is_paid_once(
    chain: Chain, local_chain: Any, signer: LocalSigner, tmp_path: Path
) -> None:
    local_chain.call("evm_setAutomine", False)
    first = asyncio.create_task(deploy(chain, signer, tmp_path / "deployments"))
    async with asyncio.timeout(20):
        while await chain.nonce(signer.address, "pending") == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    again = asyncio.create_task(deploy(chain, signer, tmp_path / "deployments"))
    await asyncio.sleep(1.0)  # it may send, if it does not know of the first
    local_chain.call("evm_setAutomine", True)
    local_chain.call("evm_mine")
    made, new = await again
    assert new
    assert await stands(chain, create2.registry(31337))
    assert await chain.nonce(signer.address, "latest") == 1
    assert made.deployer == signer.address
    assert list((tmp_path / "state" / "sent").iterdir()) == []


async def test_what_somebody_else_deployed_is_found_with_its_block(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    local_chain.call("anvil_mine", "0x7")
    made, _ = await deploy(chain, signer, tmp_path / "theirs")
    local_chain.call("anvil_mine", "0x5")
    stranger = local_chain.signer(wei=0)
    assert await deploy(chain, stranger, tmp_path / "ours") == (made, False)
    assert read_deployment(tmp_path / "ours" / "31337.json") == made


async def test_nothing_is_found_where_nothing_stands(chain: Chain, tmp_path: Path) -> None:
    assert await find(chain, create2.registry(31337), tmp_path) is None


async def test_a_file_of_a_block_that_is_gone_is_mended(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    local_chain.call("anvil_mine", "0x3")
    made, _ = await deploy(chain, signer, tmp_path)
    stale = replace(made, block_hash="0x" + "ab" * 32, block_number=2)
    for text in (json.dumps(_fields(stale)), "{}", "broken", json.dumps(["old"])):
        (tmp_path / "31337.json").write_text(text)
        assert await deploy(chain, signer, tmp_path) == (made, False)
        assert read_deployment(tmp_path / "31337.json") == made


async def test_a_deployment_that_no_longer_stands_is_made_again(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    before = local_chain.call("evm_snapshot")
    first, _ = await deploy(chain, signer, tmp_path)
    local_chain.call("evm_revert", before)
    local_chain.call("anvil_mine")
    second, new = await deploy(chain, signer, tmp_path)
    assert new
    assert second.address == first.address
    assert second.block_number > first.block_number
    assert read_deployment(tmp_path / "31337.json") == second


async def test_the_start_block_can_be_said_where_it_cannot_be_found(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    before = local_chain.call("evm_snapshot")
    made, _ = await deploy(chain, signer, tmp_path / "theirs")
    code = local_chain.call("eth_getCode", made.address, "latest")
    local_chain.call("evm_revert", before)
    local_chain.call("anvil_mine", "0x4")
    local_chain.call("anvil_setCode", made.address, code)  # by no transaction of the factory
    with pytest.raises(UsageError, match="was not found") as refusal:
        await find(chain, create2.registry(31337), tmp_path)
    assert "--start-block" in refusal.value.fix
    found = await find(chain, create2.registry(31337), tmp_path, start_block=3)
    assert found is not None
    assert (found.block_number, found.deployer, found.tx_hash) == (3, "", "")


async def test_an_endpoint_without_old_state_is_told_how_to_help(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    await deploy(chain, signer, tmp_path / "theirs")
    async with Pruned([local_chain.url], max_attempts=1) as rpc:
        pruned = Chain(rpc, 31337, tmp_path)
        with pytest.raises(Unavailable) as refusal:
            await find(pruned, create2.registry(31337), tmp_path)
        assert "--start-block" in refusal.value.fix
        found = await find(pruned, create2.registry(31337), tmp_path, start_block=1)
        assert found is not None
        assert found.tx_hash


async def test_code_that_answers_with_other_ages_is_not_our_registry(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    made, _ = await deploy(chain, signer, tmp_path)
    usual = create2.registry(1)
    code = local_chain.call("eth_getCode", made.address, "latest")
    for planted in (code, "0x00", "0x5f5ffd"):
        local_chain.call("anvil_setCode", usual.address, planted)
        with pytest.raises(UsageError, match="is not CapabilityRegistry") as refusal:
            await stands(chain, usual)
        assert refusal.value.code is Code.NO_CONTRACT


# the factory --------------------------------------------------------------------------------


@pytest.mark.parametrize("anvil", [("--no-create2",)], indirect=True)
async def test_a_chain_without_the_factory_is_told_how_to_get_it(
    chain: Chain, signer: LocalSigner, local_chain: Any, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no CREATE2 factory") as refusal:
        await deploy(chain, signer, tmp_path)
    assert refusal.value.code is Code.NO_CONTRACT
    assert create2.FACTORY_MAKER in refusal.value.fix
    # what the message says to do
    local_chain.call("anvil_setBalance", create2.FACTORY_MAKER, hex(10**16))
    local_chain.call("eth_sendRawTransaction", FACTORY_TRANSACTION)
    local_chain.call("evm_mine")
    assert await chain.code(create2.FACTORY) == create2.FACTORY_CODE
    # the one fee that Anvil has seen so far was a high one
    made, _ = await deploy(chain, signer, tmp_path, fee_cap_wei=10**18)
    assert made.address == create2.registry(31337).address


def test_the_documentation_gives_the_factorys_transaction() -> None:
    text = (Path(__file__).parents[3] / "docs" / "networks.md").read_text("utf-8")
    assert FACTORY_TRANSACTION in text
    assert create2.FACTORY_MAKER in text
    assert create2.FACTORY in text


# files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"chain_id": 1, "registry": "0x12"}'])
def test_what_is_no_deployment_file_is_unreadable(tmp_path: Path, text: str) -> None:
    path = tmp_path / "1.json"
    path.write_text(text)
    with pytest.raises(UsageError) as refusal:
        read_deployment(path)
    assert refusal.value.code is Code.UNREADABLE


def test_an_atomic_write_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_an_atomic_write_goes_through_a_link_and_replaces_nothing_but_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="cannot write") as refusal:
        write_atomically(tmp_path / "pipe", b"new")
    assert refusal.value.why == "it is not a file"
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 3


def _fields(deployment: DeployedContract) -> dict[str, Any]:
    return {name: getattr(deployment, name) for name in deployment.__slots__}
