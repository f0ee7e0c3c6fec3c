"""Whose word counts when a block that was final is contradicted."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from capdex.net.rpc.client import EndpointAnswer
from capdex_indexer.chain.reorg import ForkChoice, choose_fork

OURS, NEW, OTHER = (bytes([n]) * 32 for n in (1, 2, 3))
WORDS = st.lists(
    st.builds(
        EndpointAnswer,
        st.uuids().map(str),
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from([None, OURS, NEW, OTHER]),
    )
)


def words(*said):
    return [EndpointAnswer(f"{at}", f"host-{at}", hash_) for at, hash_ in enumerate(said)]


@given(WORDS)
def test_nothing_final_goes_on_one_witness_or_against_as_many(said):
    origins = defaultdict(set)
    for word in said:
        origins[word.answer].add(word.origin)
    choice = choose_fork(OURS, said)
    if choice.replaced_by is not None:
        assert choice.replaced_by != OURS
        assert len(origins[choice.replaced_by]) >= 2
        assert len(origins[choice.replaced_by]) > len(origins[OURS])
        assert not choice.wrong
    if choice.wrong:
        assert origins[OURS]
        assert {
            w.label for w in said if w.label in choice.wrong and w.answer in (None, OURS)
        } == set()


def test_two_keys_at_one_vendor_are_one_witness():
    assert (
        choose_fork(OURS, [EndpointAnswer("1", "host", NEW), EndpointAnswer("2", "host", NEW)])
        == ForkChoice()
    )


def test_one_endpoint_alone_decides_nothing():
    assert choose_fork(OURS, words(NEW)) == choose_fork(OURS, words(NEW, None)) == ForkChoice()


def test_two_that_disagree_with_each_other_decide_nothing():
    assert choose_fork(OURS, words(NEW, OTHER)) == ForkChoice()


def test_who_contradicts_a_block_that_another_holds_is_a_liar():
    assert choose_fork(OURS, words(NEW, OURS)) == ForkChoice(wrong=("0",))
    assert choose_fork(OURS, words(NEW, OURS, OURS, NEW)) == ForkChoice(wrong=("0", "3"))


def test_two_that_agree_outweigh_one_that_was_left_behind():
    assert (
        choose_fork(OURS, words(NEW, NEW))
        == choose_fork(OURS, words(NEW, OURS, NEW))
        == ForkChoice(NEW)
    )
