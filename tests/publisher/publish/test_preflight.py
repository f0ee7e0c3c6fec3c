"""A release is compared with the one it follows before it is published."""

from __future__ import annotations

import pytest

from capdex.diff.diff import Allowance
from capdex.errors import Code, InvalidInput
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.package import verify
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.authoring.validate import announcement_of
from capdex_publisher.publish.preflight import compare_with_previous, look_up
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.submit import submit

WIDER = frozenset({Allowance.WIDENED_PERMISSION})


async def package(signer, version, *, permission=""):
    text = scaffold("note", version=version, description="Notes", kind=PackageKind.PROMPT)
    text = text.replace("require: []", f"require: [{permission}]")
    return await sign(text.encode(), signer, chain_id=31337)


async def transact(registry, signer, function, *arguments):
    priced = await registry.price(signer.address, function, *arguments)
    await confirm(registry.chain, await submit(registry.chain, signer, priced))


@pytest.fixture
def publish(registry, signer, blocks):
    """`await publish(data, keep=)` announces a package, with or without its bytes."""

    async def announce(data, *, keep=True):
        uri, cid = read(data).require().uri, Cid.of(data)
        if keep:
            await blocks.put(data)
        await transact(
            registry, signer, "publish", uri.name, str(uri.version), str(cid), cid.digest
        )

    return announce


@pytest.fixture
def candidate(registry, signer):
    """`await candidate(data)` looks a package up in the registry."""

    async def look(data):
        announcement = announcement_of(read(data), chain_id=31337, publisher=signer.address)
        return await look_up(verify(announcement, data), registry=registry)

    return look


@pytest.fixture
def compare(registry, candidate, blocks):
    """`await compare(data, …)` compares a package with what is there."""

    async def look(data, *, beside=(), allow=frozenset()):
        return await compare_with_previous(
            await candidate(data),
            registry=registry,
            sources=[blocks],
            beside=[await candidate(one) for one in beside],
            allow=allow,
        )

    return look


async def test_a_first_release_follows_none(compare, signer):
    assert (await compare(await package(signer, "1.0.0"))).previous is None


async def test_a_release_is_compared_with_the_highest_below_it(compare, publish, signer):
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        await publish(await package(signer, version))
    compared = await compare(await package(signer, "1.2.1"))
    assert str(compared.previous) == "1.2.0"
    assert compared.difference is not None
    assert compared.difference.changes == ()


async def test_the_highest_stable_release_above_is_named(compare, publish, registry, signer):
    assert (await compare(await package(signer, "1.0.0"))).latest is None
    for version in ("1.0.0", "1.2.0", "1.3.0", "2.0.0-rc.1"):
        await publish(await package(signer, version))
    await transact(registry, signer, "yank", "note", "1.3.0", 2, "")
    for version, latest in (("1.0.1", "1.2.0"), ("1.3.1", "None"), ("2.0.0", "None")):
        assert str((await compare(await package(signer, version))).latest) == latest


async def test_a_yanked_release_is_passed_over(compare, publish, registry, signer):
    await publish(await package(signer, "1.0.0"))
    await publish(await package(signer, "1.1.0", permission="state.query"))
    await transact(registry, signer, "yank", "note", "1.1.0", 1, "")
    assert str((await compare(await package(signer, "1.1.1"))).previous) == "1.0.0"


async def test_a_permission_is_not_widened_in_a_patch_unless_the_author_insists(
    compare, publish, signer
):
    await publish(await package(signer, "1.0.0"))
    wider = await package(signer, "1.0.1", permission="state.query")
    with pytest.raises(InvalidInput) as refusal:
        await compare(wider)
    assert refusal.value.code is Code.STEP_TOO_SMALL
    assert "--allow widened-permission" in refusal.value.fix
    assert (await compare(wider, allow=WIDER)).difference is not None
    assert (
        await compare(await package(signer, "1.1.0", permission="state.query"))
    ).difference is not None


async def test_a_refusal_tells_a_version_that_is_free(compare, publish, registry, signer):
    for version in ("1.0.0", "1.1.0", "1.2.0", "2.0.0"):
        await publish(await package(signer, version))
    await transact(registry, signer, "yank", "note", "1.2.0", 2, "")
    wider = await package(signer, "1.0.1", permission="state.query")
    with pytest.raises(InvalidInput, match="patch") as refusal:
        await compare(wider, beside=[await package(signer, "1.3.0")])
    assert "raise metadata.id to 1.4.0," in refusal.value.fix


async def test_a_release_of_the_same_call_counts_as_published(compare, signer):
    first = await package(signer, "1.0.0")
    wider = await package(signer, "1.0.1", permission="state.query")
    with pytest.raises(InvalidInput) as refusal:
        await compare(wider, beside=[first, wider])
    assert refusal.value.code is Code.STEP_TOO_SMALL


@pytest.mark.parametrize("bytes_", ["lost", "others"])
async def test_old_bytes_that_cannot_be_had_are_told_and_no_refusal(
    compare, publish, signer, registry, blocks, bytes_
):
    if bytes_ == "lost":
        await publish(await package(signer, "1.0.0"), keep=False)
    else:
        cid = await blocks.put(b"no package at all")
        await transact(registry, signer, "publish", "note", "1.0.0", str(cid), cid.digest)
    compared = await compare(await package(signer, "1.0.1", permission="state.query"))
    assert str(compared.previous) == "1.0.0"
    assert compared.difference is None
    assert compared.unread


async def test_bytes_that_a_source_makes_up_are_not_compared(
    publish, candidate, registry, signer, tmp_path
):
    class Liar(BlockDirectory):
        async def get(self, cid):
            return await package(signer, "1.0.0", permission="state.query")

    await publish(await package(signer, "1.0.0"))
    wider = await candidate(await package(signer, "1.0.1", permission="state.query"))
    compared = await compare_with_previous(
        wider, registry=registry, sources=[Liar(tmp_path / "lies")]
    )
    assert compared.unread
