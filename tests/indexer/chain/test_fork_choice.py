"""Whose word counts when a block that was final is contradicted."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from indexer.chain.fork_choice import Finding, Word, weigh

OURS, NEW, OTHER = (bytes([n]) * 32 for n in (1, 2, 3))
WORDS = st.lists(
    st.builds(
        Word,
        st.uuids().map(str),
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from([None, OURS, NEW, OTHER]),
    )
)


def words(*said):
    return [Word(f"{at}", f"host-{at}", hash_) for at, hash_ in enumerate(said)]


@given(WORDS)
def test_nothing_final_goes_on_one_witness_or_against_as_many(said):
    origins = defaultdict(set)
    for word in said:
        origins[word.hash].add(word.origin)
    finding = weigh(OURS, said)
    if finding.gone is not None:
        assert finding.gone != OURS
        assert len(origins[finding.gone]) >= 2
        assert len(origins[finding.gone]) > len(origins[OURS])
        assert not finding.liars
    if finding.liars:
        assert origins[OURS]
        assert {
            w.label for w in said if w.label in finding.liars and w.hash in (None, OURS)
        } == set()


def test_two_keys_at_one_vendor_are_one_witness():
    assert weigh(OURS, [Word("1", "host", NEW), Word("2", "host", NEW)]) == Finding()


def test_one_endpoint_alone_decides_nothing():
    assert weigh(OURS, words(NEW)) == weigh(OURS, words(NEW, None)) == Finding()


def test_two_that_disagree_with_each_other_decide_nothing():
    assert weigh(OURS, words(NEW, OTHER)) == Finding()


def test_who_contradicts_a_block_that_another_holds_is_a_liar():
    assert weigh(OURS, words(NEW, OURS)) == Finding(liars=("0",))
    assert weigh(OURS, words(NEW, OURS, OURS, NEW)) == Finding(liars=("0", "3"))


def test_two_that_agree_outweigh_one_that_was_left_behind():
    assert weigh(OURS, words(NEW, NEW)) == weigh(OURS, words(NEW, OURS, NEW)) == Finding(NEW)
