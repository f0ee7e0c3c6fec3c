"""Deploying the registry, once."""

from __future__ import annotations

import json

import pytest

from capdex.errors import Code, Refused, UsageError
from publisher.deploy import deploy, read_deployment
from publisher.files import write_atomically
from publisher.registry import Registry


async def test_a_deployment_is_written_and_found_again(chain, account, tmp_path):
    first, new = await deploy(chain, account, tmp_path)
    assert new
    path = tmp_path / "31337.json"
    assert read_deployment(path) == first
    assert json.loads(path.read_text()).keys() == {
        "chain_id",
        "registry",
        "deployer",
        "block_number",
        "block_hash",
        "tx_hash",
        "contract",
    }
    again, new = await deploy(chain, account, tmp_path)
    assert (again, new) == (first, False)
    assert await Registry(chain, first.registry).release_count("note") == 0


async def test_force_deploys_another(chain, account, tmp_path):
    first, _ = await deploy(chain, account, tmp_path)
    second, new = await deploy(chain, account, tmp_path, force=True)
    assert new
    assert second.registry != first.registry
    assert read_deployment(tmp_path / "31337.json") == second


async def test_a_deployment_that_no_longer_stands_is_made_again(
    chain, account, local_chain, tmp_path
):
    first, _ = await deploy(chain, account, tmp_path)
    local_chain.call("anvil_setCode", first.registry, "0x")
    second, new = await deploy(chain, account, tmp_path)
    assert new
    assert second.registry != first.registry


async def test_an_empty_account_deploys_nothing(chain, local_chain, tmp_path):
    with pytest.raises(Refused) as refusal:
        await deploy(chain, local_chain.account(wei=0), tmp_path)
    assert refusal.value.code is Code.EMPTY_ACCOUNT
    assert list(tmp_path.glob("*.json")) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"chain_id": 1, "registry": "0x12"}'])
def test_what_is_no_deployment_file_is_unreadable(tmp_path, text):
    path = tmp_path / "1.json"
    path.write_text(text)
    with pytest.raises(UsageError) as refusal:
        read_deployment(path)
    assert refusal.value.code is Code.UNREADABLE


def test_an_atomic_write_keeps_the_mode_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]
